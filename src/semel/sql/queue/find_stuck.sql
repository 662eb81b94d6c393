-- What waits although it should not: per queue, jobs whose lease ran out long ago and jobs due long ago, so that nobody
-- serves them. Caller: store.upkeep. Locks: none. Index: jobs_live. Looks at the 1,000 oldest of each lane at most.
WITH RECURSIVE lane AS (
    (SELECT queue, priority FROM {schema}.jobs WHERE live ORDER BY queue, priority DESC LIMIT 1)
    UNION ALL
    SELECT following.queue, following.priority
      FROM lane CROSS JOIN LATERAL (
        (SELECT job.queue, job.priority FROM {schema}.jobs AS job
          WHERE job.live AND job.queue = lane.queue AND job.priority < lane.priority
          ORDER BY job.priority DESC LIMIT 1)
        UNION ALL
        (SELECT job.queue, job.priority FROM {schema}.jobs AS job
          WHERE job.live AND job.queue > lane.queue
          ORDER BY job.queue, job.priority DESC LIMIT 1)
        LIMIT 1) AS following
)
SELECT lane.queue,
       count(*) FILTER (WHERE old.status = 'running'),
       count(*) FILTER (WHERE old.status = 'pending'),
       extract(epoch FROM max(statement_timestamp() - old.run_at))
  FROM lane CROSS JOIN LATERAL (
    SELECT job.status, job.run_at, job.locked_until FROM {schema}.jobs AS job
     WHERE job.live AND job.queue = lane.queue AND job.priority = lane.priority
       AND job.run_at < statement_timestamp() - make_interval(secs => CAST(:age AS double precision))
     ORDER BY job.run_at, job.id LIMIT 1000) AS old
 WHERE (old.status = 'pending')
    OR old.locked_until < statement_timestamp() - make_interval(secs => CAST(:age AS double precision))
 GROUP BY lane.queue
