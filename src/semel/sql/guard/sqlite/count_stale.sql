-- What waits for somebody, per job type: held operations, claims whose lease ended and released ones that nobody claimed,
-- that many seconds ago. Caller: store.guard_upkeep. Locks: none. Index: semel_operations_open.
SELECT job_type,
       CAST(sum(CASE WHEN state = 'held' THEN 1 ELSE 0 END) AS INTEGER),
       CAST(sum(CASE WHEN state = 'claimed' THEN 1 ELSE 0 END) AS INTEGER),
       CAST(sum(CASE WHEN state = 'released' THEN 1 ELSE 0 END) AS INTEGER),
       CAST(max(waiting) AS REAL)
  FROM (SELECT job_type, state,
               (julianday('now') - 2440587.5) * 86400.0 - CASE state WHEN 'claimed' THEN lease_until ELSE changed_at END AS waiting
          FROM semel_operations
         WHERE state IN ('claimed', 'held', 'released')) AS unfinished
 WHERE state = 'held' OR waiting > CAST(:idle AS REAL)
 GROUP BY job_type
 ORDER BY job_type
