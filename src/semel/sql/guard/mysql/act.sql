-- The point of no return: fenced by the attempt's own token, it renews the lease. After a look-up that said NOT_DONE it gives
-- a new reference. Caller: store.guard_end.act. Locks: the row. No row changed: the claim is lost.
UPDATE semel_operations
   SET revision = revision + 1, acting_at = coalesce(acting_at, UTC_TIMESTAMP(6)), unsure_until = NULL,
       lease_until = UTC_TIMESTAMP(6) + INTERVAL CAST(:lease AS DECIMAL(20, 6)) SECOND,
       looks = CASE WHEN CAST(:new_reference AS SIGNED) <> 0 THEN 0 ELSE looks END,
       reference = CASE WHEN CAST(:new_reference AS SIGNED) <> 0 THEN CAST(:reference AS CHAR) ELSE reference END,
       reference_at = CASE WHEN CAST(:new_reference AS SIGNED) <> 0 THEN UTC_TIMESTAMP(6) ELSE reference_at END,
       generation = generation + CASE WHEN CAST(:new_reference AS SIGNED) <> 0 THEN 1 ELSE 0 END,
       changed_at = UTC_TIMESTAMP(6)
 WHERE scope = CAST(CONVERT(:scope USING utf8mb4) AS BINARY) AND job_type = CAST(CONVERT(:job_type USING utf8mb4) AS BINARY)
   AND `key` = UNHEX(CAST(:key AS CHAR))
   AND token = CAST(:token AS BINARY) AND state = 'claimed'
