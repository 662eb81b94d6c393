-- No statement by itself: the lanes (queue, priority) that have a live job, by a loose index scan of jobs_live. claim.sql and
-- look_ahead.sql begin with it.
lane AS (
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
