-- Completes past the lease or out of held, where nobody took over; or what a look-up found. Caller: store.guard_end,
-- store.guard_begin.looked. Locks: the row, held already.
UPDATE {schema}.operations
   SET state = 'completed', outcome = CAST(:outcome AS text), revision = revision + 1,
       result = CAST(CAST(:result AS text) AS jsonb), result_dropped = CAST(:result_dropped AS boolean), message = NULL,
       held_reason = NULL, completed_at = clock_timestamp(), changed_at = clock_timestamp()
 WHERE scope = CAST(:scope AS text) AND job_type = CAST(:job_type AS text) AND key = decode(CAST(:key AS text), 'hex')
   AND token = CAST(:token AS text) AND state IN ('claimed', 'held') AND transaction_id IS NULL
RETURNING 1
