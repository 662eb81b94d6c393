-- What is known of the first delivery's payload, for one that came with another. Caller: store.guard_begin. Locks: none.
-- Index: semel_operations_once.
SELECT fingerprint, message
  FROM semel_operations
 WHERE scope = CAST(CONVERT(:scope USING utf8mb4) AS BINARY) AND job_type = CAST(CONVERT(:job_type USING utf8mb4) AS BINARY)
   AND `key` = UNHEX(CAST(:key AS CHAR))
