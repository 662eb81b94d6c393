-- How long the oldest due job of a queue has waited, in seconds; no row where none is due. Jobs that run count: they are
-- not done. Caller: store.jobs.find_lag. Locks: none. Index: jobs_live, one probe a priority.
WITH RECURSIVE lane AS (
    (SELECT job.priority, job.run_at FROM {schema}.jobs AS job
      WHERE job.live AND job.queue = CAST(:queue AS text) ORDER BY job.priority DESC, job.run_at LIMIT 1)
    UNION ALL
    SELECT following.priority, following.run_at
      FROM lane CROSS JOIN LATERAL (
        SELECT job.priority, job.run_at FROM {schema}.jobs AS job
         WHERE job.live AND job.queue = CAST(:queue AS text) AND job.priority < lane.priority
         ORDER BY job.priority DESC, job.run_at LIMIT 1) AS following
)
SELECT CAST(extract(epoch FROM statement_timestamp() - min(run_at)) AS double precision)
  FROM lane WHERE run_at <= statement_timestamp()
HAVING count(*) > 0
