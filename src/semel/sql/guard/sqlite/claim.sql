-- Claims a released operation anew; another payload is adopted, under a new reference. Caller: store.guard_begin. Locks: the file, for writing.
UPDATE semel_operations
   SET state = 'claimed', revision = revision + 1, claim = claim + 1, claims = claims + 1, token = CAST(:token AS TEXT),
       claimed_at = ((julianday('now') - 2440587.5) * 86400.0),
       lease_until = (julianday('now') - 2440587.5) * 86400.0 + CAST(:lease AS REAL),
       acting_at = CASE WHEN CAST(:acting AS INTEGER) <> 0 THEN ((julianday('now') - 2440587.5) * 86400.0) END, unsure_until = NULL,
       fingerprint = coalesce(CAST(:fingerprint AS TEXT), fingerprint), effect = CAST(:effect AS TEXT),
       reference = CASE WHEN CAST(:new_reference AS INTEGER) <> 0 THEN CAST(:reference AS TEXT) ELSE reference END,
       reference_at = CASE WHEN CAST(:new_reference AS INTEGER) <> 0 THEN ((julianday('now') - 2440587.5) * 86400.0) ELSE reference_at END,
       generation = generation + CASE WHEN CAST(:new_reference AS INTEGER) <> 0 THEN 1 ELSE 0 END,
       transaction_id = CASE WHEN CAST(:in_transaction AS INTEGER) <> 0 THEN CAST(:token AS TEXT) END,
       message = coalesce(CAST(:message AS TEXT), message), held_reason = NULL, changed_at = ((julianday('now') - 2440587.5) * 86400.0)
 WHERE scope = CAST(:scope AS TEXT) AND job_type = CAST(:job_type AS TEXT) AND key = CAST(:key AS BLOB)
   AND revision = CAST(:revision AS INTEGER)
RETURNING 1
