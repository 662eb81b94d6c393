-- One job, wherever it is. Caller: store.views. Locks: none. Index: the key, and jobs_done_id in each day's table.
SELECT job.id, job.kind, job.queue, job.status, job.priority, job.attempts, job.max_attempts, job.crashes, job.run_at,
       job.locked_until, job.created_at, job.finished_at, job.unique_key, job.last_error, progress.fraction, progress.message,
       CAST(job.payload AS text), CAST(job.result AS text), job.errors, job.unique_until, job.ordering_key, job.claim, job.worker,
       CAST(job.meta AS text),
       NOT EXISTS (SELECT FROM {schema}.jobs AS hot WHERE hot.id = job.id)
  FROM {schema}.all_jobs AS job
  LEFT JOIN {schema}.job_progress AS progress ON progress.job_id = job.id
 WHERE job.id = CAST(:id AS bigint)
 LIMIT 1
