-- Moves to the history what ended in place: jobs whose unique key has been remembered long enough, and jobs that another
-- program set to done or cancelled. Caller: store.upkeep. Locks: the rows, skipping locked ones. Index: jobs_finished.
-- A day that retention has ended already is not made again for them: they count as finished now.
WITH ripe AS MATERIALIZED (
    SELECT id FROM {schema}.jobs
     WHERE NOT live AND finished_at <= statement_timestamp() AND status IN ('done', 'cancelled')
       AND (unique_key IS NULL
            OR coalesce(unique_until, finished_at + make_interval(secs => CAST(:remember AS double precision)))
               <= statement_timestamp())
     ORDER BY id LIMIT 1000 FOR UPDATE SKIP LOCKED
), moved AS (
    DELETE FROM {schema}.jobs WHERE id = ANY (ARRAY(SELECT id FROM ripe))
    RETURNING id, kind, payload, status, attempts, max_attempts, run_at, last_error, unique_key, created_at, queue,
              ordering_key, unique_until, priority, claim, crashes, finished_at, result, errors, meta
), stored AS (
    INSERT INTO {schema}.jobs_done
           (id, kind, payload, status, attempts, max_attempts, run_at, last_error, unique_key, created_at, queue,
            ordering_key, unique_until, priority, claim, crashes, finished_at, result, errors, meta)
    SELECT id, kind, payload, status, attempts, max_attempts, run_at, last_error, unique_key, created_at, queue,
           ordering_key, unique_until, priority, claim, crashes,
           CASE WHEN to_regclass('{schema}.jobs_done_' || to_char(finished_at AT TIME ZONE 'UTC', 'YYYYMMDD')) IS NULL
                THEN clock_timestamp() ELSE finished_at END, result, errors, meta
      FROM moved
)
SELECT count(*) FROM moved
