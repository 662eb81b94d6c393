-- Claims a released operation anew; another payload is adopted, under a new reference. Caller: store.guard_begin. Locks: the row.
UPDATE semel_operations
   SET state = 'claimed', revision = revision + 1, claim = claim + 1, claims = claims + 1, token = CAST(:token AS BINARY),
       claimed_at = UTC_TIMESTAMP(6),
       lease_until = UTC_TIMESTAMP(6) + INTERVAL CAST(:lease AS DECIMAL(20, 6)) SECOND,
       acting_at = CASE WHEN CAST(:acting AS SIGNED) <> 0 THEN UTC_TIMESTAMP(6) END, unsure_until = NULL,
       fingerprint = coalesce(CAST(:fingerprint AS BINARY), fingerprint), effect = CAST(:effect AS CHAR),
       reference = CASE WHEN CAST(:new_reference AS SIGNED) <> 0 THEN CAST(:reference AS CHAR) ELSE reference END,
       reference_at = CASE WHEN CAST(:new_reference AS SIGNED) <> 0 THEN UTC_TIMESTAMP(6) ELSE reference_at END,
       generation = generation + CASE WHEN CAST(:new_reference AS SIGNED) <> 0 THEN 1 ELSE 0 END,
       transaction_id = CASE WHEN CAST(:in_transaction AS SIGNED) <> 0 THEN CAST(:token AS BINARY) END,
       message = coalesce(CAST(:message AS CHAR), message), held_reason = NULL, changed_at = UTC_TIMESTAMP(6)
 WHERE scope = CAST(CONVERT(:scope USING utf8mb4) AS BINARY) AND job_type = CAST(CONVERT(:job_type USING utf8mb4) AS BINARY)
   AND `key` = UNHEX(CAST(:key AS CHAR))
   AND revision = CAST(:revision AS SIGNED)
