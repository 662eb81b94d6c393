-- Gives claims back that never started, or were interrupted by a stop: pending again, the attempt not charged.
-- Caller: store.jobs.give_back. Locks: the rows in id order, FOR NO KEY UPDATE, waiting half a second at most.
-- Index: the key.
-- A job with crashes on its count stays running with its lease ended and one crash less: the next rescue restores both
-- numbers, and what the last one noted. As pending with attempts 0 it would look re-queued by a person, and its crashes
-- would start anew.
WITH held AS MATERIALIZED (
    SELECT slot.id
      FROM (SELECT * FROM unnest(CAST(:ids AS bigint[]), CAST(:claims AS bigint[]), CAST(:workers AS bigint[]))
                AS pair (id, claim, worker)
             CROSS JOIN (SELECT set_config('lock_timeout', '500ms', true)) AS patience ORDER BY id) AS slot
     CROSS JOIN LATERAL (
        SELECT 1 FROM {schema}.jobs AS owned
         WHERE owned.id = slot.id AND owned.claim = slot.claim AND owned.worker = slot.worker AND owned.status = 'running'
           FOR NO KEY UPDATE) AS job
)
UPDATE {schema}.jobs
   SET status = CASE WHEN crashes > 0 THEN 'running' ELSE 'pending' END,
       claim = nextval('{schema}.claim_seq'),
       worker = NULL,
       locked_until = CASE WHEN crashes > 0
                           THEN clock_timestamp() + make_interval(secs => CAST(:delay AS double precision)) END,
       attempts = attempts - CASE WHEN crashes > 0 OR attempts = 0 THEN 0 ELSE 1 END,
       crashes = crashes - CASE WHEN crashes > 0 THEN 1 ELSE 0 END,
       errors = CASE WHEN crashes > 0 AND errors #>> '{-1,type}' = 'WorkerDied' THEN errors - (-1) ELSE errors END
 WHERE id = ANY (ARRAY(SELECT id FROM held))
RETURNING id
