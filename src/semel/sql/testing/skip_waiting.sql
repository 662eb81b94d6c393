-- Moves every waiting job's time to run forward, so that the last is due now and all keep their order. Answers how many.
-- Caller: testing.draining. Locks: the rows that wait. Reads the whole table: for the small databases of tests.
WITH waiting AS (
    SELECT id, run_at, max(run_at) OVER () AS latest
      FROM {schema}.jobs
     WHERE live AND status = 'pending' AND run_at > statement_timestamp()
       AND (CAST(:queues AS text[]) IS NULL OR queue = ANY (CAST(:queues AS text[])))
), moved AS (
    UPDATE {schema}.jobs AS job
       SET run_at = statement_timestamp() - (waiting.latest - waiting.run_at)
      FROM waiting
     WHERE job.id = waiting.id AND job.status = 'pending' AND job.run_at = waiting.run_at
    RETURNING 1
)
SELECT count(*) FROM moved
