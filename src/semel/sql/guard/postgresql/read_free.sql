-- The record as it stands, locked for a move in the caller's transaction; waits for nobody. Caller: store.guard_begin.begin_row.
-- Locks: the row, FOR NO KEY UPDATE SKIP LOCKED: no row back means that a rival's transaction has it. Index: operations_once.
SELECT state, outcome, revision, claim, coalesce(token = CAST(:token AS text), false),
       coalesce(fingerprint = CAST(:fingerprint AS text), true),
       CAST(extract(epoch FROM lease_until - clock_timestamp()) AS double precision),
       acting_at IS NOT NULL,
       CAST(extract(epoch FROM clock_timestamp() - unsure_until) AS double precision),
       reference, generation, CAST(extract(epoch FROM clock_timestamp() - reference_at) AS double precision),
       unsure, takeovers, looks, extra_used, transaction_id, CAST(result AS text), result_dropped, last_error, message IS NOT NULL
  FROM {schema}.operations
 WHERE scope = CAST(:scope AS text) AND job_type = CAST(:job_type AS text) AND key = decode(CAST(:key AS text), 'hex')
   FOR NO KEY UPDATE SKIP LOCKED
