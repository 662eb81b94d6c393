-- A page of operations, newest first. Caller: store.guard_views. Locks: none. Index: semel_operations_open where only open
-- states are wanted, else the key by id, newest first. {states} are the wanted states as quoted literals, so that a partial
-- index can serve. {limit} is a number. idle: only claims whose lease ended, and released ones that nobody claimed, that many
-- seconds ago; unclaimed: released ones so many seconds later.
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
       held_reason, last_error, message IS NOT NULL, key_version, result_dropped
  FROM semel_operations
{shared/wanted_operations}
   AND (CAST(:before_id AS INTEGER) IS NULL OR id < CAST(:before_id AS INTEGER))
 ORDER BY id DESC LIMIT {limit}
