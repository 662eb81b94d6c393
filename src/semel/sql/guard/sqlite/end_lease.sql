-- Lets a claim's lease have ended so many seconds ago, as if the time had passed: for replays, on staging. Caller: store.guard_replay.end_lease.
-- Locks: the file, for writing.
UPDATE semel_operations
   SET lease_until = (julianday('now') - 2440587.5) * 86400.0 - CAST(:before AS REAL),
       unsure_until = CASE WHEN unsure_until IS NOT NULL THEN (julianday('now') - 2440587.5) * 86400.0 - CAST(:before AS REAL) END
 WHERE job_type = CAST(:job_type AS TEXT) AND key = CAST(:key AS BLOB) AND state = 'claimed'
