-- No statement by itself: up to {limit} jobs that may be claimed, locked, of the lanes in `served`, each from its place on.
-- claim.sql and claim_marked.sql pick by it.
CROSS JOIN LATERAL (
        SELECT job.id FROM {schema}.jobs AS job
         WHERE job.live AND job.queue = served.queue AND job.priority = served.priority
           AND (job.run_at, job.id) >= (served.run_at, served.id) AND job.run_at <= statement_timestamp()
           AND (job.status = 'pending' OR job.locked_until < statement_timestamp())
           AND (job.ordering_key IS NULL OR NOT CAST(:keyless AS boolean))
         ORDER BY job.run_at, job.id
         LIMIT {limit}
           FOR NO KEY UPDATE SKIP LOCKED) AS due
     LIMIT {limit}
