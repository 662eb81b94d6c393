-- Runs a job of the history again: as a new one, since the history only grows. Caller: operate. Locks: none but its own row.
-- No row back: the copy's unique key is taken by another job, or the job is gone. Index: jobs_done_id in each day's table.
WITH original AS MATERIALIZED (
    SELECT id, status, kind, payload, queue, priority, max_attempts, unique_key, ordering_key, meta
      FROM {schema}.jobs_done WHERE id = CAST(:id AS bigint) LIMIT 1
), copied AS (
    INSERT INTO {schema}.jobs (kind, payload, queue, priority, max_attempts, run_at, unique_key, ordering_key, meta)
    SELECT kind, payload, queue, priority, max_attempts, statement_timestamp(), unique_key, ordering_key, meta FROM original
    ON CONFLICT (kind, unique_key) WHERE unique_key IS NOT NULL DO NOTHING
    RETURNING id
), noted AS (
    INSERT INTO {schema}.job_events (job_id, act, who, why, before, after)
    SELECT original.id, 'retry', CAST(:who AS text),
           concat_ws(' ', CAST(:why AS text), '(runs again as job ' || copied.id || ')'), original.status, original.status
      FROM original CROSS JOIN copied
    UNION ALL
    SELECT copied.id, 'retry', CAST(:who AS text),
           concat_ws(' ', CAST(:why AS text), '(a copy of job ' || original.id || ')'), original.status, 'pending'
      FROM original CROSS JOIN copied
)
SELECT id FROM copied
