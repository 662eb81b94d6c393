-- One operation by its id, locked until the end of the transaction: the columns of read.sql, then what people's acts need.
-- Caller: store.guard_people. Locks: none of its own, since the transaction around it has begun with BEGIN IMMEDIATE. Index:
-- the key.
SELECT state, outcome, revision, claim, false, true,
       lease_until - (julianday('now') - 2440587.5) * 86400.0,
       acting_at IS NOT NULL,
       (julianday('now') - 2440587.5) * 86400.0 - unsure_until,
       reference, generation, (julianday('now') - 2440587.5) * 86400.0 - reference_at,
       unsure, takeovers, looks, extra_used, transaction_id, result, result_dropped, last_error, message IS NOT NULL,
       scope, job_type, CAST(key AS TEXT), label, message,
       (julianday('now') - 2440587.5) * 86400.0 - changed_at
  FROM semel_operations
 WHERE id = CAST(:id AS INTEGER)
