-- By which adapters the messages came that the operations of list_operations.sql keep. Caller: store.guard_views. Locks:
-- none. Index: semel_operations_open where only open states are wanted.
SELECT DISTINCT json_extract(message, '$.adapter')
  FROM semel_operations
 WHERE state IN ({states})
   AND (CAST(:job_type AS TEXT) IS NULL OR job_type = CAST(:job_type AS TEXT))
   AND (CAST(:scope AS TEXT) IS NULL OR scope = CAST(:scope AS TEXT))
   AND (CAST(:label AS TEXT) IS NULL OR label = CAST(:label AS TEXT))
   AND (CAST(:key AS TEXT) IS NULL OR key = CAST(:key AS BLOB))
   AND (CAST(:changed_before AS REAL) IS NULL
        OR changed_at < CAST(:changed_before AS REAL))
   AND (CAST(:changed_after AS REAL) IS NULL
        OR changed_at >= CAST(:changed_after AS REAL))
   AND (CAST(:idle AS REAL) IS NULL
        OR CASE state WHEN 'claimed' THEN lease_until WHEN 'released' THEN changed_at + CAST(:unclaimed AS REAL) END
           < (julianday('now') - 2440587.5) * 86400.0 - CAST(:idle AS REAL))
   AND message IS NOT NULL
