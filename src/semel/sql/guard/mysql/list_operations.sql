-- A page of operations, newest first. Caller: store.guard_views. Locks: none. Index: semel_operations_open where only open
-- states are wanted, else the key by id, newest first. {states} are the wanted states as quoted literals, so that a partial
-- index can serve. {limit} is a number. idle: only claims whose lease ended, and released ones that nobody claimed, that many
-- seconds ago; unclaimed: released ones so many seconds later.
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
       held_reason, last_error, message IS NOT NULL, key_version, result_dropped
  FROM semel_operations
{shared/wanted_operations}
   AND (CAST(:before_id AS SIGNED) IS NULL OR id < CAST(:before_id AS SIGNED))
 ORDER BY id DESC LIMIT {limit}
