-- Holds a stale claim for a person; its token stays, so that a late finisher can still answer. Caller: store.guard_begin. Locks: the file, for writing.
UPDATE semel_operations
   SET state = 'held', revision = revision + 1, held_reason = CAST(:reason AS TEXT),
       unsure_until = coalesce(unsure_until, min(lease_until, ((julianday('now') - 2440587.5) * 86400.0))),
       changed_at = ((julianday('now') - 2440587.5) * 86400.0)
 WHERE scope = CAST(:scope AS TEXT) AND job_type = CAST(:job_type AS TEXT) AND key = CAST(:key AS BLOB)
   AND revision = CAST(:revision AS INTEGER) AND state = 'claimed'
RETURNING 1
