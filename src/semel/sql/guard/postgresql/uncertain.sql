-- The attempt cannot tell whether the effect happened: its lease ends now, the policy need not wait. Caller: store.guard_end.uncertain.
UPDATE {schema}.operations
   SET revision = revision + 1, unsure = unsure + 1, lease_until = clock_timestamp(), unsure_until = clock_timestamp(),
       acting_at = coalesce(acting_at, clock_timestamp()), last_error = CAST(:error AS text), changed_at = clock_timestamp()
 WHERE scope = CAST(:scope AS text) AND job_type = CAST(:job_type AS text) AND key = decode(CAST(:key AS text), 'hex')
   AND token = CAST(:token AS text) AND state = 'claimed'
RETURNING 1
