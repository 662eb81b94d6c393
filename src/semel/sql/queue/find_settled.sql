-- Which of these claims have ended under their own number. Caller: store.jobs.find_settled, after a settlement found rows
-- gone: the commit may have gone through and its answer been lost. Locks: none. Index: the key, jobs_done_id.
SELECT pair.id, pair.claim
  FROM unnest(CAST(:ids AS bigint[]), CAST(:claims AS bigint[])) AS pair (id, claim)
 WHERE EXISTS (SELECT 1 FROM {schema}.jobs AS job
                WHERE job.id = pair.id AND job.claim = pair.claim AND job.status <> 'running')
    OR EXISTS (SELECT 1 FROM {schema}.jobs_done AS job WHERE job.id = pair.id AND job.claim = pair.claim)
