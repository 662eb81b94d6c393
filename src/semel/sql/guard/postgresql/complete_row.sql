-- Completes a Row(): only in the transaction that claimed it. Caller: store.guard_end.complete_row. Locks: the row.
UPDATE {schema}.operations
   SET state = 'completed', outcome = CAST(:outcome AS text), revision = revision + 1,
       result = CAST(CAST(:result AS text) AS jsonb), result_dropped = CAST(:result_dropped AS boolean), message = NULL,
       transaction_id = NULL, completed_at = clock_timestamp(), changed_at = clock_timestamp()
 WHERE scope = CAST(:scope AS text) AND job_type = CAST(:job_type AS text) AND key = decode(CAST(:key AS text), 'hex')
   AND token = CAST(:token AS text) AND state = 'claimed' AND transaction_id = CAST(pg_current_xact_id() AS text)
RETURNING 1
