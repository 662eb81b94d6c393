-- A new claim on a stale one, to ask the outside system first. Caller: store.guard_begin.begin_known. Locks: the row.
-- unsure_until keeps the end of the last claim that may have acted: settle times count from it.
UPDATE {schema}.operations
   SET revision = revision + 1, claim = claim + 1, claims = claims + 1, looks = looks + 1, token = CAST(:token AS text),
       claimed_at = clock_timestamp(), unsure_until = coalesce(unsure_until, lease_until),
       lease_until = clock_timestamp() + make_interval(secs => CAST(:lease AS double precision)),
       effect = CAST(:effect AS text), message = coalesce(CAST(CAST(:message AS text) AS jsonb), message),
       changed_at = clock_timestamp()
 WHERE scope = CAST(:scope AS text) AND job_type = CAST(:job_type AS text) AND key = decode(CAST(:key AS text), 'hex')
   AND revision = CAST(:revision AS bigint) AND state = 'claimed' AND lease_until <= clock_timestamp()
RETURNING 1
