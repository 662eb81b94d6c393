-- One operation with all there is about it. Caller: store.guard_views. Locks: none. Index: the key.
SELECT id, scope, job_type,
       CAST(key AS TEXT), label, state, outcome, claim, revision, effect,
       created_at,
       changed_at,
       claimed_at,
       lease_until,
       acting_at,
       completed_at,
       claims, unsure, takeovers, looks, extra_used, reference, generation,
       reference_at,
       held_reason, last_error, message IS NOT NULL, key_version, result_dropped, result,
       message, unsure_until
  FROM semel_operations
 WHERE id = CAST(:id AS INTEGER)
