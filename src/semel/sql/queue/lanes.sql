-- No statement by itself: the lanes (queue, priority) that have a live job, and the first of each, by a loose index scan of
-- jobs_live. claim.sql, look_ahead.sql and sweep.sql begin with it.
lane AS (
    (SELECT queue, priority, run_at, id FROM {schema}.jobs
      WHERE live ORDER BY queue, priority DESC, run_at, id LIMIT 1)
    UNION ALL
    SELECT following.queue, following.priority, following.run_at, following.id
      FROM lane CROSS JOIN LATERAL (
        (SELECT job.queue, job.priority, job.run_at, job.id FROM {schema}.jobs AS job
          WHERE job.live AND job.queue = lane.queue AND job.priority < lane.priority
          ORDER BY job.priority DESC, job.run_at, job.id LIMIT 1)
        UNION ALL
        (SELECT job.queue, job.priority, job.run_at, job.id FROM {schema}.jobs AS job
          WHERE job.live AND job.queue > lane.queue
          ORDER BY job.queue, job.priority DESC, job.run_at, job.id LIMIT 1)
        LIMIT 1) AS following
)
