-- The attempt that holds the claim gives it to a person. Caller: store.guard_begin.looked. Locks: the row.
UPDATE semel_operations
   SET state = 'held', revision = revision + 1, held_reason = CAST(:reason AS CHAR),
       last_error = coalesce(CAST(:error AS CHAR), last_error),
       unsure_until = coalesce(unsure_until, UTC_TIMESTAMP(6)), changed_at = UTC_TIMESTAMP(6)
 WHERE scope = CAST(CONVERT(:scope USING utf8mb4) AS BINARY) AND job_type = CAST(CONVERT(:job_type USING utf8mb4) AS BINARY)
   AND `key` = UNHEX(CAST(:key AS CHAR))
   AND token = CAST(:token AS BINARY) AND state = 'claimed'
