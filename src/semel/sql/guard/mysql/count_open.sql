-- What is not completed, per job type and state: how many, and the longest since the lease ended (claimed; below zero while it
-- runs) or since the last change. Caller: store.measures. Locks: none. Index: semel_operations_open.
SELECT CONVERT(job_type USING utf8mb4), state, count(*),
       max(TIMESTAMPDIFF(MICROSECOND, CASE state WHEN 'claimed' THEN lease_until ELSE changed_at END, UTC_TIMESTAMP(6)))
       / 1000000,
       max(TIMESTAMPDIFF(MICROSECOND, claimed_at, UTC_TIMESTAMP(6))) / 1000000
  FROM semel_operations
 WHERE state IN ('claimed', 'held', 'released')
 GROUP BY job_type, state
 ORDER BY job_type, state
