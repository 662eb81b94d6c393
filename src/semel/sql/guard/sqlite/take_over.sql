-- A new claim on a stale one, to act. Caller: store.guard_begin. Locks: the file, for writing. acting_at survives: it may have acted.
UPDATE semel_operations
   SET revision = revision + 1, claim = claim + 1, claims = claims + 1, takeovers = takeovers + 1, token = CAST(:token AS TEXT),
       claimed_at = ((julianday('now') - 2440587.5) * 86400.0),
       lease_until = (julianday('now') - 2440587.5) * 86400.0 + CAST(:lease AS REAL),
       acting_at = coalesce(acting_at, CASE WHEN CAST(:acting AS INTEGER) <> 0 THEN ((julianday('now') - 2440587.5) * 86400.0) END), unsure_until = NULL,
       extra_used = extra_used + CASE WHEN CAST(:use_extra AS INTEGER) <> 0 THEN 1 ELSE 0 END, effect = CAST(:effect AS TEXT),
       transaction_id = CASE WHEN CAST(:in_transaction AS INTEGER) <> 0 THEN CAST(:token AS TEXT) END,
       message = coalesce(CAST(:message AS TEXT), message), changed_at = ((julianday('now') - 2440587.5) * 86400.0)
 WHERE scope = CAST(:scope AS TEXT) AND job_type = CAST(:job_type AS TEXT) AND key = CAST(:key AS BLOB)
   AND revision = CAST(:revision AS INTEGER) AND state = 'claimed' AND lease_until <= ((julianday('now') - 2440587.5) * 86400.0)
RETURNING 1
