-- What is not completed, per job type and state: how many, and the longest since the lease ended (claimed; below zero while it
-- runs) or since the last change. Caller: store.measures. Locks: none. Index: operations_open.
SELECT job_type, state, count(*),
       CAST(max(extract(epoch FROM clock_timestamp() - CASE state WHEN 'claimed' THEN lease_until ELSE changed_at END))
            AS double precision),
       CAST(max(extract(epoch FROM clock_timestamp() - claimed_at)) AS double precision)
  FROM {schema}.operations
 WHERE state IN ('claimed', 'held', 'released')
 GROUP BY job_type, state
 ORDER BY job_type, state
