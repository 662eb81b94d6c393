-- Deletes dead letters that are older than their retention. Caller: store.upkeep. Locks: the rows, skipping locked ones.
-- Index: jobs_finished. Held jobs are never deleted.
WITH old AS MATERIALIZED (
    SELECT id FROM {schema}.jobs
     WHERE NOT live AND status = 'failed'
       AND finished_at < statement_timestamp() - make_interval(secs => CAST(:keep AS double precision))
     ORDER BY finished_at LIMIT 1000 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM {schema}.jobs WHERE id = ANY (ARRAY(SELECT id FROM old)) RETURNING id
), progress AS (
    DELETE FROM {schema}.job_progress WHERE job_id = ANY (ARRAY(SELECT id FROM old))
)
SELECT count(*) FROM gone
