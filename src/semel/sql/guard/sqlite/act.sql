-- The point of no return: fenced by the attempt's own token, it renews the lease. After a look-up that said NOT_DONE it gives
-- a new reference. Caller: store.guard_end.act. Locks: the file, for writing. No row changed: the claim is lost.
UPDATE semel_operations
   SET revision = revision + 1, acting_at = coalesce(acting_at, ((julianday('now') - 2440587.5) * 86400.0)), unsure_until = NULL,
       lease_until = (julianday('now') - 2440587.5) * 86400.0 + CAST(:lease AS REAL),
       looks = CASE WHEN CAST(:new_reference AS INTEGER) <> 0 THEN 0 ELSE looks END,
       reference = CASE WHEN CAST(:new_reference AS INTEGER) <> 0 THEN CAST(:reference AS TEXT) ELSE reference END,
       reference_at = CASE WHEN CAST(:new_reference AS INTEGER) <> 0 THEN ((julianday('now') - 2440587.5) * 86400.0) ELSE reference_at END,
       generation = generation + CASE WHEN CAST(:new_reference AS INTEGER) <> 0 THEN 1 ELSE 0 END,
       changed_at = ((julianday('now') - 2440587.5) * 86400.0)
 WHERE scope = CAST(:scope AS TEXT) AND job_type = CAST(:job_type AS TEXT) AND key = CAST(:key AS BLOB)
   AND token = CAST(:token AS TEXT) AND state = 'claimed'
RETURNING 1
