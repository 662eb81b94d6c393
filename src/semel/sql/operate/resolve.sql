-- Ends a held or failed job as done, because a person says that its effect happened. Caller: operate.held_jobs, after lock_job.sql.
-- Upkeep moves it to the history. Index: the key.
WITH moved AS (
    UPDATE {schema}.jobs SET status = 'done'
     WHERE id = CAST(:id AS bigint) AND status = CAST(:before AS text) AND status IN ('held', 'failed')
    RETURNING id
), noted AS (
    INSERT INTO {schema}.job_events (job_id, act, who, why, before, after)
    SELECT id, 'resolve', CAST(:who AS text), CAST(:why AS text), CAST(:before AS text), 'done' FROM moved
)
SELECT id FROM moved
