-- A page of operations, newest first. Caller: store.guard_views. Locks: none. Index: operations_open where only open states
-- are wanted, else the key by id, newest first. {states} are the wanted states as quoted literals, so that a partial index
-- can serve. {limit} is a number. idle: only claims whose lease ended, and released ones that nobody claimed, that many
-- seconds ago; unclaimed: released ones so many seconds later.
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
       held_reason, last_error, message IS NOT NULL, key_version, result_dropped
  FROM {schema}.operations
{shared/wanted_operations}
   AND (CAST(:before_id AS bigint) IS NULL OR id < CAST(:before_id AS bigint))
 ORDER BY id DESC LIMIT {limit}
