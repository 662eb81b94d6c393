-- Completes a stale claim as missed. Caller: store.guard_begin.begin_known. Locks: the file, for writing.
UPDATE semel_operations
   SET state = 'completed', outcome = 'missed', revision = revision + 1, message = NULL,
       completed_at = ((julianday('now') - 2440587.5) * 86400.0), changed_at = ((julianday('now') - 2440587.5) * 86400.0)
 WHERE scope = CAST(:scope AS TEXT) AND job_type = CAST(:job_type AS TEXT) AND key = CAST(:key AS BLOB)
   AND revision = CAST(:revision AS INTEGER) AND state = 'claimed' AND lease_until <= ((julianday('now') - 2440587.5) * 86400.0)
RETURNING 1
