-- The look-up could not tell: ask again after a while. Caller: store.guard_begin.looked. Locks: the file, for writing.
UPDATE semel_operations
   SET revision = revision + 1, lease_until = (julianday('now') - 2440587.5) * 86400.0 + CAST(:wait AS REAL),
       last_error = coalesce(CAST(:error AS TEXT), last_error), changed_at = ((julianday('now') - 2440587.5) * 86400.0)
 WHERE scope = CAST(:scope AS TEXT) AND job_type = CAST(:job_type AS TEXT) AND key = CAST(:key AS BLOB)
   AND token = CAST(:token AS TEXT) AND state = 'claimed'
RETURNING 1
