-- One operation with all there is about it. Caller: store.guard_views. Locks: none. Index: the key.
SELECT id, CONVERT(scope USING utf8mb4), CONVERT(job_type USING utf8mb4),
       LOWER(HEX(`key`)), label, state, outcome, claim, revision, effect,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', created_at) / 1000000,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', changed_at) / 1000000,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', claimed_at) / 1000000,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', lease_until) / 1000000,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', acting_at) / 1000000,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', completed_at) / 1000000,
       claims, unsure, takeovers, looks, extra_used, reference, generation,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', reference_at) / 1000000,
       held_reason, last_error, message IS NOT NULL, key_version, result_dropped, result,
       message, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', unsure_until) / 1000000
  FROM semel_operations
 WHERE id = CAST(:id AS SIGNED)
