-- One operation by its id, locked until the end of the transaction: the columns of read.sql, then what people's acts need.
-- Caller: store.guard_people. Locks: the row, FOR NO KEY UPDATE, waiting five seconds at most. Index: the key.
SELECT state, outcome, revision, claim, false, true,
       CAST(extract(epoch FROM lease_until - clock_timestamp()) AS double precision),
       acting_at IS NOT NULL,
       CAST(extract(epoch FROM clock_timestamp() - unsure_until) AS double precision),
       reference, generation, CAST(extract(epoch FROM clock_timestamp() - reference_at) AS double precision),
       unsure, takeovers, looks, extra_used, transaction_id, CAST(result AS text), result_dropped, last_error, message IS NOT NULL,
       scope, job_type, encode(key, 'hex'), label, CAST(message AS text),
       CAST(extract(epoch FROM clock_timestamp() - changed_at) AS double precision)
  FROM {schema}.operations, (SELECT set_config('lock_timeout', '5s', true)) AS patience
 WHERE id = CAST(:id AS bigint)
   FOR NO KEY UPDATE OF operations
