-- Which of these claims still hold. Caller: store.jobs.extend, for those that the extension skipped. Locks: none. Index: the key.
SELECT slot.id, slot.claim
  FROM unnest(CAST(:ids AS bigint[]), CAST(:claims AS bigint[]), CAST(:workers AS bigint[])) AS slot (id, claim, worker)
 CROSS JOIN LATERAL (
    SELECT 1 FROM {schema}.jobs AS owned
     WHERE owned.id = slot.id AND owned.claim = slot.claim AND owned.worker = slot.worker AND owned.status = 'running'
     LIMIT 1) AS job
