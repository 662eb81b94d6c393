-- Cancels one job that waits, runs, failed or is held. Caller: operate, after lock_job.sql. Index: the key.
-- It moves to the history in this statement; with a unique key it stays until unique_until. A running one leaves its claim:
-- the fence of the attempt holds no more.
WITH ending AS MATERIALIZED (
    SELECT id, unique_key IS NULL OR coalesce(unique_until <= statement_timestamp(), false) AS leaves
      FROM {schema}.jobs
     WHERE id = CAST(:id AS bigint) AND status = CAST(:before AS text)
       FOR NO KEY UPDATE
), moved AS (
    DELETE FROM {schema}.jobs WHERE id = ANY (ARRAY(SELECT id FROM ending WHERE leaves))
    RETURNING id, kind, payload, attempts, max_attempts, run_at, last_error, unique_key, created_at, queue, ordering_key,
              unique_until, priority, claim, crashes, errors, meta
), stored AS (
    INSERT INTO {schema}.jobs_done
           (id, kind, payload, status, attempts, max_attempts, run_at, last_error, unique_key, created_at, queue,
            ordering_key, unique_until, priority, claim, crashes, finished_at, errors, meta)
    SELECT id, kind, payload, 'cancelled', attempts, max_attempts, run_at, last_error, unique_key, created_at, queue,
           ordering_key, unique_until, priority, claim, crashes, clock_timestamp(), errors, meta
      FROM moved
), kept AS (
    UPDATE {schema}.jobs
       SET status = 'cancelled',
           unique_until = coalesce(unique_until,
                                   clock_timestamp() + make_interval(secs => CAST(:remember AS double precision)))
     WHERE id = ANY (ARRAY(SELECT id FROM ending WHERE NOT leaves))
), noted AS (
    INSERT INTO {schema}.job_events (job_id, act, who, why, before, after)
    SELECT id, 'cancel', CAST(:who AS text), CAST(:why AS text), CAST(:before AS text), 'cancelled' FROM ending
)
SELECT id FROM ending
