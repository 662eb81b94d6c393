-- Completes an operation within its lease: the plain way, one statement. Caller: store.guard_end.complete. Locks: the row, waiting half a second at most.
UPDATE {schema}.operations
   SET state = 'completed', outcome = CAST(:outcome AS text), revision = revision + 1,
       result = CAST(CAST(:result AS text) AS jsonb), result_dropped = CAST(:result_dropped AS boolean), message = NULL,
       completed_at = clock_timestamp(), changed_at = clock_timestamp()
  FROM (SELECT set_config('lock_timeout', '500ms', true)) AS patience
 WHERE scope = CAST(:scope AS text) AND job_type = CAST(:job_type AS text) AND key = decode(CAST(:key AS text), 'hex')
   AND token = CAST(:token AS text) AND state = 'claimed' AND lease_until > clock_timestamp() AND transaction_id IS NULL
RETURNING 1
