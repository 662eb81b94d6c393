-- What waits for somebody, per job type: held operations, claims whose lease ended and released ones that nobody claimed,
-- that many seconds ago. Caller: store.guard_upkeep. Locks: none. Index: semel_operations_open.
SELECT CONVERT(job_type USING utf8mb4),
       CAST(sum(CASE WHEN state = 'held' THEN 1 ELSE 0 END) AS SIGNED),
       CAST(sum(CASE WHEN state = 'claimed' THEN 1 ELSE 0 END) AS SIGNED),
       CAST(sum(CASE WHEN state = 'released' THEN 1 ELSE 0 END) AS SIGNED),
       max(waiting)
  FROM (SELECT job_type, state,
               TIMESTAMPDIFF(MICROSECOND, CASE state WHEN 'claimed' THEN lease_until ELSE changed_at END, UTC_TIMESTAMP(6)) / 1000000 AS waiting
          FROM semel_operations
         WHERE state IN ('claimed', 'held', 'released')) AS unfinished
 WHERE state = 'held' OR waiting > CAST(:idle AS DECIMAL(20, 6))
 GROUP BY job_type
 ORDER BY job_type
