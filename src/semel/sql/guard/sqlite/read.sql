-- The record as it stands, with the database's clock. Caller: store.guard_begin. Locks: none. Index: semel_operations_once.
SELECT state, outcome, revision, claim, coalesce(token = CAST(:token AS TEXT), 0),
       coalesce(fingerprint = CAST(:fingerprint AS TEXT), 1),
       lease_until - (julianday('now') - 2440587.5) * 86400.0,
       acting_at IS NOT NULL,
       (julianday('now') - 2440587.5) * 86400.0 - unsure_until,
       reference, generation, (julianday('now') - 2440587.5) * 86400.0 - reference_at,
       unsure, takeovers, looks, extra_used, transaction_id, result, result_dropped, last_error, message IS NOT NULL
  FROM semel_operations
 WHERE scope = CAST(:scope AS TEXT) AND job_type = CAST(:job_type AS TEXT) AND key = CAST(:key AS BLOB)
