-- Holds a stale claim for a person; its token stays, so that a late finisher can still answer. Caller: store.guard_begin. Locks: the row.
UPDATE semel_operations
   SET state = 'held', revision = revision + 1, held_reason = CAST(:reason AS CHAR),
       unsure_until = coalesce(unsure_until, least(lease_until, UTC_TIMESTAMP(6))),
       changed_at = UTC_TIMESTAMP(6)
 WHERE scope = CAST(CONVERT(:scope USING utf8mb4) AS BINARY) AND job_type = CAST(CONVERT(:job_type USING utf8mb4) AS BINARY)
   AND `key` = UNHEX(CAST(:key AS CHAR))
   AND revision = CAST(:revision AS SIGNED) AND state = 'claimed'
