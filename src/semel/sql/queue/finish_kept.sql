-- Moves to the history what ended in place: jobs whose unique key has been remembered long enough, and jobs that another
-- program set to done or cancelled. Caller: store.upkeep. Locks: the rows, skipping locked ones. Index: jobs_finished.
-- A row without unique_until and with a key gets one first, counted from its end.
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
           ordering_key, unique_until, priority, claim, crashes, clock_timestamp(), result, errors, meta
      FROM moved
)
SELECT count(*) FROM moved
