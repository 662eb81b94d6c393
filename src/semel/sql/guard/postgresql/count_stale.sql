-- What waits for somebody, per job type: held operations, claims whose lease ended and released ones that nobody claimed,
-- that many seconds ago. Caller: store.guard_upkeep. Locks: none. Index: operations_open.
SELECT job_type,
       CAST(sum(CASE WHEN state = 'held' THEN 1 ELSE 0 END) AS bigint),
       CAST(sum(CASE WHEN state = 'claimed' THEN 1 ELSE 0 END) AS bigint),
       CAST(sum(CASE WHEN state = 'released' THEN 1 ELSE 0 END) AS bigint),
       CAST(max(waiting) AS double precision)
  FROM (SELECT job_type, state,
               extract(epoch FROM clock_timestamp() - CASE state WHEN 'claimed' THEN lease_until ELSE changed_at END) AS waiting
          FROM {schema}.operations
         WHERE state IN ('claimed', 'held', 'released')) AS unfinished
 WHERE state = 'held' OR waiting > CAST(:idle AS double precision)
 GROUP BY job_type
 ORDER BY job_type
