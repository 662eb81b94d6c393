-- Extends the leases of exactly these claims. Caller: store.jobs.extend, from outside the process that runs the handlers.
-- Locks: the rows in id order, FOR NO KEY UPDATE, skipping locked ones (they are being settled). Index: the key. HOT.
WITH held AS MATERIALIZED (
    SELECT slot.id
      FROM (SELECT * FROM unnest(CAST(:ids AS bigint[]), CAST(:claims AS bigint[]), CAST(:workers AS bigint[]))
                AS pair (id, claim, worker) ORDER BY id) AS slot
     CROSS JOIN LATERAL (
        SELECT 1 FROM {schema}.jobs AS owned
         WHERE owned.id = slot.id AND owned.claim = slot.claim AND owned.worker = slot.worker AND owned.status = 'running'
           FOR NO KEY UPDATE SKIP LOCKED) AS job
)
UPDATE {schema}.jobs
   SET locked_until = clock_timestamp() + make_interval(secs => CAST(:lease AS double precision))
 WHERE id = ANY (ARRAY(SELECT id FROM held))
RETURNING id, claim
