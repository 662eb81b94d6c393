-- What is not completed, per job type and state: how many, and the longest since the lease ended (claimed; below zero while it
-- runs) or since the last change. Caller: store.measures. Locks: none. Index: semel_operations_open.
SELECT job_type, state, count(*),
       max((julianday('now') - 2440587.5) * 86400.0 - CASE state WHEN 'claimed' THEN lease_until ELSE changed_at END),
       max((julianday('now') - 2440587.5) * 86400.0 - claimed_at)
  FROM semel_operations
 WHERE state IN ('claimed', 'held', 'released')
 GROUP BY job_type, state
 ORDER BY job_type, state
