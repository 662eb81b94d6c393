-- Claims a released operation anew; another payload is adopted, under a new reference. Caller: store.guard_begin. Locks: the row.
UPDATE {schema}.operations
   SET state = 'claimed', revision = revision + 1, claim = claim + 1, claims = claims + 1, token = CAST(:token AS text),
       claimed_at = clock_timestamp(), lease_until = clock_timestamp() + make_interval(secs => CAST(:lease AS double precision)),
       acting_at = CASE WHEN CAST(:acting AS boolean) THEN clock_timestamp() END, unsure_until = NULL,
       fingerprint = coalesce(CAST(:fingerprint AS text), fingerprint), effect = CAST(:effect AS text),
       reference = CASE WHEN CAST(:new_reference AS boolean) THEN CAST(:reference AS text) ELSE reference END,
       reference_at = CASE WHEN CAST(:new_reference AS boolean) THEN clock_timestamp() ELSE reference_at END,
       generation = generation + CASE WHEN CAST(:new_reference AS boolean) THEN 1 ELSE 0 END,
       transaction_id = CASE WHEN CAST(:in_transaction AS boolean) THEN CAST(pg_current_xact_id() AS text) END,
       message = coalesce(CAST(CAST(:message AS text) AS jsonb), message), held_reason = NULL,
       changed_at = clock_timestamp()
 WHERE scope = CAST(:scope AS text) AND job_type = CAST(:job_type AS text) AND key = decode(CAST(:key AS text), 'hex')
   AND revision = CAST(:revision AS bigint)
RETURNING 1
