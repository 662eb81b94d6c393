-- Something came to the record's history that a person who looked before does not know. Caller: store.guard_end. Locks:
-- the file, for writing. Index: the key.
UPDATE semel_operations
   SET revision = revision + 1
 WHERE scope = CAST(:scope AS TEXT) AND job_type = CAST(:job_type AS TEXT) AND key = CAST(:key AS BLOB)
RETURNING 1
