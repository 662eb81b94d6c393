-- Ends the leases of claims whose process died while it ran them, so that the next claim rescues them and counts a crash.
-- Caller: store.jobs.expire (a supervisor, for its dead child). Locks: the rows in id order, FOR NO KEY UPDATE. Index: the key.
-- Wakes who sleeps: no trigger sees this update.
WITH held AS MATERIALIZED (
    SELECT slot.id
      FROM (SELECT * FROM unnest(CAST(:ids AS bigint[]), CAST(:claims AS bigint[]), CAST(:workers AS bigint[]))
                AS pair (id, claim, worker) ORDER BY id) AS slot
     CROSS JOIN LATERAL (
        SELECT 1 FROM {schema}.jobs AS owned
         WHERE owned.id = slot.id AND owned.claim = slot.claim AND owned.worker = slot.worker AND owned.status = 'running'
           FOR NO KEY UPDATE) AS job
), expired AS (
    UPDATE {schema}.jobs SET locked_until = clock_timestamp() - interval '1 microsecond', worker = NULL
     WHERE id = ANY (ARRAY(SELECT id FROM held))
    RETURNING id, queue
)
SELECT id, {schema}.wake(queue, statement_timestamp()) FROM expired
