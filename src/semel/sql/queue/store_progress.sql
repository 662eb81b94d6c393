-- Stores the progress of running attempts, fenced as every write of theirs. Caller: store.jobs.store_progress.
INSERT INTO {schema}.job_progress AS progress (job_id, attempt, fraction, message, updated_at)
SELECT job.id, job.attempts, listed.fraction, listed.message, clock_timestamp()
  FROM (SELECT * FROM jsonb_to_recordset(CAST(:rows AS jsonb))
            AS listed (id bigint, claim bigint, worker bigint, fraction double precision, message text) ORDER BY id) AS listed
  JOIN {schema}.jobs AS job
    ON job.id = listed.id AND job.claim = listed.claim AND job.worker = listed.worker AND job.status = 'running'
ON CONFLICT (job_id) DO UPDATE
   SET attempt = excluded.attempt, fraction = excluded.fraction, message = excluded.message, updated_at = excluded.updated_at
RETURNING job_id
