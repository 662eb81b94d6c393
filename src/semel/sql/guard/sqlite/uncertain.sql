-- The attempt cannot tell whether the effect happened: its lease ends now, the policy need not wait. Caller: store.guard_end.
-- Locks: the file, for writing.
UPDATE semel_operations
   SET revision = revision + 1, unsure = unsure + 1, lease_until = ((julianday('now') - 2440587.5) * 86400.0), unsure_until = ((julianday('now') - 2440587.5) * 86400.0),
       acting_at = coalesce(acting_at, ((julianday('now') - 2440587.5) * 86400.0)), last_error = CAST(:error AS TEXT), changed_at = ((julianday('now') - 2440587.5) * 86400.0)
 WHERE scope = CAST(:scope AS TEXT) AND job_type = CAST(:job_type AS TEXT) AND key = CAST(:key AS BLOB)
   AND token = CAST(:token AS TEXT) AND state = 'claimed'
RETURNING 1
