-- A new claim on a stale one, to ask the outside system first. Caller: store.guard_begin.begin_known. Locks: the row.
-- unsure_until keeps the end of the last claim that may have acted: settle times count from it.
-- MySQL assigns from left to right: unsure_until comes before lease_until.
UPDATE semel_operations
   SET revision = revision + 1, claim = claim + 1, claims = claims + 1, looks = looks + 1, token = CAST(:token AS BINARY),
       claimed_at = UTC_TIMESTAMP(6), unsure_until = coalesce(unsure_until, lease_until),
       lease_until = UTC_TIMESTAMP(6) + INTERVAL CAST(:lease AS DECIMAL(20, 6)) SECOND,
       effect = CAST(:effect AS CHAR), message = coalesce(CAST(:message AS CHAR), message),
       changed_at = UTC_TIMESTAMP(6)
 WHERE scope = CAST(CONVERT(:scope USING utf8mb4) AS BINARY) AND job_type = CAST(CONVERT(:job_type USING utf8mb4) AS BINARY)
   AND `key` = UNHEX(CAST(:key AS CHAR))
   AND revision = CAST(:revision AS SIGNED) AND state = 'claimed' AND lease_until <= UTC_TIMESTAMP(6)
