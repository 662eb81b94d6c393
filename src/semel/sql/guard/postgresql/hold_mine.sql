-- The attempt that holds the claim gives it to a person. Caller: store.guard_begin.looked. Locks: the row.
UPDATE {schema}.operations
   SET state = 'held', revision = revision + 1, held_reason = CAST(:reason AS text),
       last_error = coalesce(CAST(:error AS text), last_error),
       unsure_until = coalesce(unsure_until, clock_timestamp()), changed_at = clock_timestamp()
 WHERE scope = CAST(:scope AS text) AND job_type = CAST(:job_type AS text) AND key = decode(CAST(:key AS text), 'hex')
   AND token = CAST(:token AS text) AND state = 'claimed'
RETURNING 1
