-- What waits and what runs, with the seconds until it is due (or its lease ends), soonest first. Caller: testing.draining.
-- Locks: none. Index: jobs_live.
SELECT id, kind, status, attempts,
       CAST(EXTRACT(epoch FROM CASE status WHEN 'running' THEN locked_until ELSE run_at END - statement_timestamp())
            AS double precision) AS seconds
  FROM {schema}.jobs
 WHERE live AND (CAST(:queues AS text[]) IS NULL OR queue = ANY (CAST(:queues AS text[])))
 ORDER BY seconds, id
 LIMIT CAST(:limit AS bigint)
