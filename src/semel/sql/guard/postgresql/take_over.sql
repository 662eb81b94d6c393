-- A new claim on a stale one, to act. Caller: store.guard_begin. Locks: the row. acting_at survives: it may have acted.
UPDATE {schema}.operations
   SET revision = revision + 1, claim = claim + 1, claims = claims + 1, takeovers = takeovers + 1,
       token = CAST(:token AS text), claimed_at = clock_timestamp(),
       lease_until = clock_timestamp() + make_interval(secs => CAST(:lease AS double precision)),
       acting_at = coalesce(acting_at, CASE WHEN CAST(:acting AS boolean) THEN clock_timestamp() END), unsure_until = NULL,
       extra_used = extra_used + CASE WHEN CAST(:use_extra AS boolean) THEN 1 ELSE 0 END, effect = CAST(:effect AS text),
       transaction_id = CASE WHEN CAST(:in_transaction AS boolean) THEN CAST(pg_current_xact_id() AS text) END,
       message = coalesce(CAST(CAST(:message AS text) AS jsonb), message), changed_at = clock_timestamp()
 WHERE scope = CAST(:scope AS text) AND job_type = CAST(:job_type AS text) AND key = decode(CAST(:key AS text), 'hex')
   AND revision = CAST(:revision AS bigint) AND state = 'claimed' AND lease_until <= clock_timestamp()
RETURNING 1
