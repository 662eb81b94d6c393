-- Deletes progress of jobs that ended more than a day ago. Caller: store.upkeep. Locks: the rows, skipping locked ones.
WITH old AS MATERIALIZED (
    SELECT job_id FROM {schema}.job_progress AS progress
     WHERE updated_at < statement_timestamp() - interval '1 day'
       AND NOT EXISTS (SELECT 1 FROM {schema}.jobs AS job WHERE job.id = progress.job_id)
     LIMIT 1000 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM {schema}.job_progress WHERE job_id = ANY (ARRAY(SELECT job_id FROM old)) RETURNING 1
)
SELECT count(*) FROM gone
