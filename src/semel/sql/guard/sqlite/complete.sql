-- Completes an operation within its lease: the plain way, one statement. Caller: store.guard_end.complete. Locks: the file, for writing.
UPDATE semel_operations
   SET state = 'completed', outcome = CAST(:outcome AS TEXT), revision = revision + 1, result = CAST(:result AS TEXT),
       result_dropped = CAST(:result_dropped AS INTEGER), message = NULL,
       completed_at = ((julianday('now') - 2440587.5) * 86400.0), changed_at = ((julianday('now') - 2440587.5) * 86400.0)
 WHERE scope = CAST(:scope AS TEXT) AND job_type = CAST(:job_type AS TEXT) AND key = CAST(:key AS BLOB)
   AND token = CAST(:token AS TEXT) AND state = 'claimed' AND lease_until > ((julianday('now') - 2440587.5) * 86400.0)
   AND transaction_id IS NULL
RETURNING 1
