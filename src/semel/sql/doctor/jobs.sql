-- Jobs that failed, by day, those that are held, and how far ahead jobs are scheduled (seconds). Caller: store.health.
-- Locks: none. Index: jobs_finished; the farthest date reads what is live.
SELECT count(*) FILTER (WHERE status = 'failed'),
       count(*) FILTER (WHERE status = 'failed' AND finished_at > statement_timestamp() - interval '24 hours'),
       count(*) FILTER (WHERE status = 'failed' AND finished_at <= statement_timestamp() - interval '24 hours'
                              AND finished_at > statement_timestamp() - interval '48 hours'),
       count(*) FILTER (WHERE status = 'held'),
       CAST(extract(epoch FROM statement_timestamp() - min(finished_at) FILTER (WHERE status = 'held')) AS double precision),
       (SELECT CAST(extract(epoch FROM max(ahead.run_at) - statement_timestamp()) AS double precision)
          FROM {schema}.jobs AS ahead WHERE ahead.live AND ahead.run_at < 'infinity')
  FROM {schema}.jobs
 WHERE NOT live
