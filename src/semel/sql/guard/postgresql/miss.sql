-- Completes a stale claim as missed. Caller: store.guard_begin.begin_known. Locks: the row.
UPDATE {schema}.operations
   SET state = 'completed', outcome = 'missed', revision = revision + 1, message = NULL, completed_at = clock_timestamp(),
       changed_at = clock_timestamp()
 WHERE scope = CAST(:scope AS text) AND job_type = CAST(:job_type AS text) AND key = decode(CAST(:key AS text), 'hex')
   AND revision = CAST(:revision AS bigint) AND state = 'claimed' AND lease_until <= clock_timestamp()
RETURNING 1
