-- Deletes one job that does not run, from the table or the history; its events stay. Caller: operate, after lock_job.sql.
-- Index: the key, and jobs_done_id in each day's table.
WITH gone AS (
    DELETE FROM {schema}.jobs
     WHERE id = CAST(:id AS bigint) AND status = CAST(:before AS text) AND status <> 'running'
    RETURNING id
), past AS (
    DELETE FROM {schema}.jobs_done WHERE id = CAST(:id AS bigint) AND status = CAST(:before AS text)
    RETURNING id
), progress AS (
    DELETE FROM {schema}.job_progress WHERE job_id IN (SELECT id FROM gone UNION ALL SELECT id FROM past)
), noted AS (
    INSERT INTO {schema}.job_events (job_id, act, who, why, before)
    SELECT id, 'delete', CAST(:who AS text), CAST(:why AS text), CAST(:before AS text)
      FROM (SELECT id FROM gone UNION SELECT id FROM past) AS deleted
)
SELECT id FROM gone UNION SELECT id FROM past
