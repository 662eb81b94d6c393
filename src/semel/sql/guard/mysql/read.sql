-- The record as it stands, with the database's clock. Caller: store.guard_begin. Locks: none. Index: semel_operations_once.
SELECT state, outcome, revision, claim, coalesce(token = CAST(:token AS BINARY), 0),
       coalesce(fingerprint = CAST(:fingerprint AS BINARY), TRUE),
       TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), lease_until) / 1000000,
       acting_at IS NOT NULL,
       TIMESTAMPDIFF(MICROSECOND, unsure_until, UTC_TIMESTAMP(6)) / 1000000,
       reference, generation, TIMESTAMPDIFF(MICROSECOND, reference_at, UTC_TIMESTAMP(6)) / 1000000,
       unsure, takeovers, looks, extra_used, transaction_id, result, result_dropped, last_error, message IS NOT NULL
  FROM semel_operations
 WHERE scope = CAST(CONVERT(:scope USING utf8mb4) AS BINARY) AND job_type = CAST(CONVERT(:job_type USING utf8mb4) AS BINARY)
   AND `key` = UNHEX(CAST(:key AS CHAR))
