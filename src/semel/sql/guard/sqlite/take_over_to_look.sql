-- A new claim on a stale one, to ask the outside system first. Caller: store.guard_begin.begin_known. Locks: the file, for writing.
-- unsure_until keeps the end of the last claim that may have acted: settle times count from it.
UPDATE semel_operations
   SET revision = revision + 1, claim = claim + 1, claims = claims + 1, looks = looks + 1, token = CAST(:token AS TEXT),
       claimed_at = ((julianday('now') - 2440587.5) * 86400.0), unsure_until = coalesce(unsure_until, lease_until),
       lease_until = (julianday('now') - 2440587.5) * 86400.0 + CAST(:lease AS REAL),
       effect = CAST(:effect AS TEXT), message = coalesce(CAST(:message AS TEXT), message),
       changed_at = ((julianday('now') - 2440587.5) * 86400.0)
 WHERE scope = CAST(:scope AS TEXT) AND job_type = CAST(:job_type AS TEXT) AND key = CAST(:key AS BLOB)
   AND revision = CAST(:revision AS INTEGER) AND state = 'claimed' AND lease_until <= ((julianday('now') - 2440587.5) * 86400.0)
RETURNING 1
