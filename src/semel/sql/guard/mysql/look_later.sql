-- The look-up could not tell: ask again after a while. Caller: store.guard_begin.looked. Locks: the row.
UPDATE semel_operations
   SET revision = revision + 1, lease_until = UTC_TIMESTAMP(6) + INTERVAL CAST(:wait AS DECIMAL(20, 6)) SECOND,
       last_error = coalesce(CAST(:error AS CHAR), last_error), changed_at = UTC_TIMESTAMP(6)
 WHERE scope = CAST(CONVERT(:scope USING utf8mb4) AS BINARY) AND job_type = CAST(CONVERT(:job_type USING utf8mb4) AS BINARY)
   AND `key` = UNHEX(CAST(:key AS CHAR))
   AND token = CAST(:token AS BINARY) AND state = 'claimed'
