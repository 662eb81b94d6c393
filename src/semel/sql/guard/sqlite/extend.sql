-- Renews the lease of an attempt that still holds its claim. Caller: store.guard_end.extend. Locks: the file, for writing.
UPDATE semel_operations
   SET revision = revision + 1, changed_at = (julianday('now') - 2440587.5) * 86400.0,
       lease_until = (julianday('now') - 2440587.5) * 86400.0 + CAST(:lease AS REAL)
 WHERE scope = CAST(:scope AS TEXT) AND job_type = CAST(:job_type AS TEXT) AND key = CAST(:key AS BLOB)
   AND token = CAST(:token AS TEXT) AND state = 'claimed'
RETURNING 1
