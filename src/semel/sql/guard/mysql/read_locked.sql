-- The record as it stands, locked until the end of the transaction. A plain read could show an older snapshot, or nothing.
-- Caller: store.guard_begin. Locks: the row, waiting up to innodb_lock_wait_timeout. Index: semel_operations_once.
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
   FOR UPDATE
