-- Renews the lease of an attempt that still holds its claim. Caller: store.guard_end.extend. Locks: the row.
UPDATE semel_operations
   SET revision = revision + 1, changed_at = UTC_TIMESTAMP(6),
       lease_until = UTC_TIMESTAMP(6) + INTERVAL CAST(:lease AS DECIMAL(20, 6)) SECOND
 WHERE scope = CAST(CONVERT(:scope USING utf8mb4) AS BINARY) AND job_type = CAST(CONVERT(:job_type USING utf8mb4) AS BINARY)
   AND `key` = UNHEX(CAST(:key AS CHAR))
   AND token = CAST(:token AS BINARY) AND state = 'claimed'
