-- The record as it stands, with the database's clock. Caller: store.guard_begin. Locks: none. Index: operations_once.
SELECT state, outcome, revision, claim, coalesce(token = CAST(:token AS text), false),
       coalesce(fingerprint = CAST(:fingerprint AS text), true),
       CAST(extract(epoch FROM lease_until - clock_timestamp()) AS double precision),
       acting_at IS NOT NULL,
       CAST(extract(epoch FROM clock_timestamp() - unsure_until) AS double precision),
       reference, generation, CAST(extract(epoch FROM clock_timestamp() - reference_at) AS double precision),
       unsure, takeovers, looks, extra_used, transaction_id, CAST(result AS text), result_dropped, last_error, message IS NOT NULL
  FROM {schema}.operations
 WHERE scope = CAST(:scope AS text) AND job_type = CAST(:job_type AS text) AND key = decode(CAST(:key AS text), 'hex')
