-- What became of these claims, where no later one followed: the job's status. Caller: store.jobs.find_settled, after a
-- settlement found rows gone: its commit may have gone through and the answer been lost, or somebody else ended the job.
-- Locks: none. Index: the key, jobs_done_id.
SELECT pair.id, pair.claim, job.status
  FROM unnest(CAST(:ids AS bigint[]), CAST(:claims AS bigint[])) AS pair (id, claim)
 CROSS JOIN LATERAL (
    SELECT live.status FROM {schema}.jobs AS live
     WHERE live.id = pair.id AND live.claim = pair.claim AND live.status <> 'running'
    UNION ALL
    SELECT past.status FROM {schema}.jobs_done AS past WHERE past.id = pair.id AND past.claim = pair.claim) AS job
