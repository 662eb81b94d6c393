-- Runs an ended job again, from its first attempt. Caller: operate, after lock_job.sql. Index: the key.
WITH moved AS (
    UPDATE {schema}.jobs SET status = 'pending', attempts = 0, run_at = statement_timestamp(), result = NULL
     WHERE id = CAST(:id AS bigint) AND status = CAST(:before AS text)
    RETURNING id
), noted AS (
    INSERT INTO {schema}.job_events (job_id, act, who, why, before, after)
    SELECT id, 'retry', CAST(:who AS text), CAST(:why AS text), CAST(:before AS text), 'pending' FROM moved
)
SELECT id FROM moved
