-- One operation with all there is about it. Caller: store.guard_views. Locks: none. Index: the key.
SELECT id, scope, job_type,
       encode(key, 'hex'), label, state, outcome, claim, revision, effect,
       CAST(extract(epoch FROM created_at) AS double precision),
       CAST(extract(epoch FROM changed_at) AS double precision),
       CAST(extract(epoch FROM claimed_at) AS double precision),
       CAST(extract(epoch FROM lease_until) AS double precision),
       CAST(extract(epoch FROM acting_at) AS double precision),
       CAST(extract(epoch FROM completed_at) AS double precision),
       claims, unsure, takeovers, looks, extra_used, reference, generation,
       CAST(extract(epoch FROM reference_at) AS double precision),
       held_reason, last_error, message IS NOT NULL, key_version, result_dropped, CAST(result AS text),
       CAST(message AS text), CAST(extract(epoch FROM unsure_until) AS double precision)
  FROM {schema}.operations
 WHERE id = CAST(:id AS bigint)
