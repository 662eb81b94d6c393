-- Something came to the record's history that a person who looked before does not know. Caller: store.guard_end. Locks:
-- the row, held already. Index: the key.
UPDATE semel_operations
   SET revision = revision + 1
 WHERE scope = CAST(CONVERT(:scope USING utf8mb4) AS BINARY) AND job_type = CAST(CONVERT(:job_type USING utf8mb4) AS BINARY)
   AND `key` = UNHEX(CAST(:key AS CHAR))
