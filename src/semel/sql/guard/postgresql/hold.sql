-- Holds a stale claim for a person; its token stays, so that a late finisher can still answer. Caller: store.guard_begin. Locks: the row.
UPDATE {schema}.operations
   SET state = 'held', revision = revision + 1, held_reason = CAST(:reason AS text),
       unsure_until = coalesce(unsure_until, least(lease_until, clock_timestamp())), changed_at = clock_timestamp()
 WHERE scope = CAST(:scope AS text) AND job_type = CAST(:job_type AS text) AND key = decode(CAST(:key AS text), 'hex')
   AND revision = CAST(:revision AS bigint) AND state = 'claimed'
RETURNING 1
