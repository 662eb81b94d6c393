-- My own claim again: its acknowledgement was lost. Caller: store.guard_begin. Locks: the file, for writing.
UPDATE semel_operations
   SET revision = revision + 1, lease_until = (julianday('now') - 2440587.5) * 86400.0 + CAST(:lease AS REAL), changed_at = ((julianday('now') - 2440587.5) * 86400.0)
 WHERE scope = CAST(:scope AS TEXT) AND job_type = CAST(:job_type AS TEXT) AND key = CAST(:key AS BLOB)
   AND revision = CAST(:revision AS INTEGER)
RETURNING 1
