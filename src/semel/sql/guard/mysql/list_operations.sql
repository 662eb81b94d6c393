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
 WHERE state IN ({states})
   AND (CAST(:job_type AS CHAR) IS NULL OR job_type = CAST(CONVERT(:job_type USING utf8mb4) AS BINARY))
   AND (CAST(:scope AS CHAR) IS NULL OR scope = CAST(CONVERT(:scope USING utf8mb4) AS BINARY))
   AND (CAST(:label AS CHAR) IS NULL OR label = CAST(:label AS CHAR))
   AND (CAST(:key AS CHAR) IS NULL OR `key` = UNHEX(CAST(:key AS CHAR)))
   AND (CAST(:changed_before AS DECIMAL(20, 6)) IS NULL
        OR changed_at < TIMESTAMP('1970-01-01') + INTERVAL CAST(:changed_before AS DECIMAL(20, 6)) SECOND)
   AND (CAST(:changed_after AS DECIMAL(20, 6)) IS NULL
        OR changed_at >= TIMESTAMP('1970-01-01') + INTERVAL CAST(:changed_after AS DECIMAL(20, 6)) SECOND)
   AND (CAST(:idle AS DECIMAL(20, 6)) IS NULL
        OR CASE state WHEN 'claimed' THEN lease_until WHEN 'released' THEN changed_at + INTERVAL CAST(:unclaimed AS DECIMAL(20, 6)) SECOND END
           < UTC_TIMESTAMP(6) - INTERVAL CAST(:idle AS DECIMAL(20, 6)) SECOND)
   AND (CAST(:before_id AS SIGNED) IS NULL OR id < CAST(:before_id AS SIGNED))
 ORDER BY id DESC LIMIT {limit}
