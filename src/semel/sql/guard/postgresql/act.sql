-- The point of no return: fenced by the attempt's own token, it renews the lease. After a look-up that said NOT_DONE it gives
-- a new reference. Caller: store.guard_end.act. Locks: the row, waiting half a second
-- at most. No row back: the claim is lost.
UPDATE {schema}.operations
   SET revision = revision + 1, acting_at = coalesce(acting_at, clock_timestamp()), unsure_until = NULL,
       lease_until = clock_timestamp() + make_interval(secs => CAST(:lease AS double precision)),
       looks = CASE WHEN CAST(:new_reference AS boolean) THEN 0 ELSE looks END,
       reference = CASE WHEN CAST(:new_reference AS boolean) THEN CAST(:reference AS text) ELSE reference END,
       reference_at = CASE WHEN CAST(:new_reference AS boolean) THEN clock_timestamp() ELSE reference_at END,
       generation = generation + CASE WHEN CAST(:new_reference AS boolean) THEN 1 ELSE 0 END,
       changed_at = clock_timestamp()
  FROM (SELECT set_config('lock_timeout', '500ms', true)) AS patience
 WHERE scope = CAST(:scope AS text) AND job_type = CAST(:job_type AS text) AND key = decode(CAST(:key AS text), 'hex')
   AND token = CAST(:token AS text) AND state = 'claimed'
RETURNING 1
