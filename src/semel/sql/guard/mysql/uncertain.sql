-- The attempt cannot tell whether the effect happened: its lease ends now, the policy need not wait. Caller: store.guard_end.
-- Locks: the row.
UPDATE semel_operations
   SET revision = revision + 1, unsure = unsure + 1, lease_until = UTC_TIMESTAMP(6), unsure_until = UTC_TIMESTAMP(6),
       acting_at = coalesce(acting_at, UTC_TIMESTAMP(6)), last_error = CAST(:error AS CHAR), changed_at = UTC_TIMESTAMP(6)
 WHERE scope = CAST(CONVERT(:scope USING utf8mb4) AS BINARY) AND job_type = CAST(CONVERT(:job_type USING utf8mb4) AS BINARY)
   AND `key` = UNHEX(CAST(:key AS CHAR))
   AND token = CAST(:token AS BINARY) AND state = 'claimed'
