-- A new claim on a stale one, to act. Caller: store.guard_begin. Locks: the row. acting_at survives: it may have acted.
UPDATE semel_operations
   SET revision = revision + 1, claim = claim + 1, claims = claims + 1, takeovers = takeovers + 1, token = CAST(:token AS BINARY),
       claimed_at = UTC_TIMESTAMP(6),
       lease_until = UTC_TIMESTAMP(6) + INTERVAL CAST(:lease AS DECIMAL(20, 6)) SECOND,
       acting_at = coalesce(acting_at, CASE WHEN CAST(:acting AS SIGNED) <> 0 THEN UTC_TIMESTAMP(6) END), unsure_until = NULL,
       extra_used = extra_used + CASE WHEN CAST(:use_extra AS SIGNED) <> 0 THEN 1 ELSE 0 END, effect = CAST(:effect AS CHAR),
       transaction_id = CASE WHEN CAST(:in_transaction AS SIGNED) <> 0 THEN CAST(:token AS BINARY) END,
       message = coalesce(CAST(:message AS CHAR), message), changed_at = UTC_TIMESTAMP(6)
 WHERE scope = CAST(CONVERT(:scope USING utf8mb4) AS BINARY) AND job_type = CAST(CONVERT(:job_type USING utf8mb4) AS BINARY)
   AND `key` = UNHEX(CAST(:key AS CHAR))
   AND revision = CAST(:revision AS SIGNED) AND state = 'claimed' AND lease_until <= UTC_TIMESTAMP(6)
