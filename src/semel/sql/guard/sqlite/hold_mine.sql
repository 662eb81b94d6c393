-- The attempt that holds the claim gives it to a person. Caller: store.guard_begin.looked. Locks: the file, for writing.
UPDATE semel_operations
   SET state = 'held', revision = revision + 1, held_reason = CAST(:reason AS TEXT),
       last_error = coalesce(CAST(:error AS TEXT), last_error),
       unsure_until = coalesce(unsure_until, ((julianday('now') - 2440587.5) * 86400.0)), changed_at = ((julianday('now') - 2440587.5) * 86400.0)
 WHERE scope = CAST(:scope AS TEXT) AND job_type = CAST(:job_type AS TEXT) AND key = CAST(:key AS BLOB)
   AND token = CAST(:token AS TEXT) AND state = 'claimed'
RETURNING 1
