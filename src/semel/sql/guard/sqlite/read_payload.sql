-- What is known of the first delivery's payload, for one that came with another. Caller: store.guard_begin. Locks: none.
-- Index: semel_operations_once.
SELECT fingerprint, message
  FROM semel_operations
 WHERE scope = CAST(:scope AS TEXT) AND job_type = CAST(:job_type AS TEXT) AND key = CAST(:key AS BLOB)
