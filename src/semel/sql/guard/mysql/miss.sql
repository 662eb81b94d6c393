-- Completes a stale claim as missed. Caller: store.guard_begin.begin_known. Locks: the row.
UPDATE semel_operations
   SET state = 'completed', outcome = 'missed', revision = revision + 1, message = NULL,
       completed_at = UTC_TIMESTAMP(6), changed_at = UTC_TIMESTAMP(6)
 WHERE scope = CAST(CONVERT(:scope USING utf8mb4) AS BINARY) AND job_type = CAST(CONVERT(:job_type USING utf8mb4) AS BINARY)
   AND `key` = UNHEX(CAST(:key AS CHAR))
   AND revision = CAST(:revision AS SIGNED) AND state = 'claimed' AND lease_until <= UTC_TIMESTAMP(6)
