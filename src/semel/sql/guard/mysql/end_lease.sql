-- Lets a claim's lease have ended so many seconds ago, as if the time had passed: for replays, on staging. Caller: store.guard_replay.end_lease.
-- Locks: the rows of the job type.
UPDATE semel_operations
   SET lease_until = UTC_TIMESTAMP(6) - INTERVAL CAST(:before AS DECIMAL(20, 6)) SECOND,
       unsure_until = CASE WHEN unsure_until IS NOT NULL THEN UTC_TIMESTAMP(6) - INTERVAL CAST(:before AS DECIMAL(20, 6)) SECOND END
 WHERE job_type = CAST(CONVERT(:job_type USING utf8mb4) AS BINARY) AND `key` = UNHEX(CAST(:key AS CHAR)) AND state = 'claimed'
