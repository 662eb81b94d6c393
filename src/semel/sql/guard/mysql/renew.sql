-- My own claim again: its acknowledgement was lost. Caller: store.guard_begin. Locks: the row.
UPDATE semel_operations
   SET revision = revision + 1, lease_until = UTC_TIMESTAMP(6) + INTERVAL CAST(:lease AS DECIMAL(20, 6)) SECOND, changed_at = UTC_TIMESTAMP(6)
 WHERE scope = CAST(CONVERT(:scope USING utf8mb4) AS BINARY) AND job_type = CAST(CONVERT(:job_type USING utf8mb4) AS BINARY)
   AND `key` = UNHEX(CAST(:key AS CHAR))
   AND revision = CAST(:revision AS SIGNED)
