-- One operation by its id, locked until the end of the transaction: the columns of read.sql, then what people's acts need.
-- Caller: store.guard_people. Locks: the row, waiting up to innodb_lock_wait_timeout. Index: the key.
SELECT state, outcome, revision, claim, false, true,
       TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), lease_until) / 1000000,
       acting_at IS NOT NULL,
       TIMESTAMPDIFF(MICROSECOND, unsure_until, UTC_TIMESTAMP(6)) / 1000000,
       reference, generation, TIMESTAMPDIFF(MICROSECOND, reference_at, UTC_TIMESTAMP(6)) / 1000000,
       unsure, takeovers, looks, extra_used, transaction_id, result, result_dropped, last_error, message IS NOT NULL,
       CONVERT(scope USING utf8mb4), CONVERT(job_type USING utf8mb4), LOWER(HEX(`key`)), label, message,
       TIMESTAMPDIFF(MICROSECOND, changed_at, UTC_TIMESTAMP(6)) / 1000000
  FROM semel_operations
 WHERE id = CAST(:id AS SIGNED)
   FOR UPDATE
