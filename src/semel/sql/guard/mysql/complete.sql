-- Completes an operation within its lease: the plain way, one statement. Caller: store.guard_end.complete. Locks: the row.
UPDATE semel_operations
   SET state = 'completed', outcome = CAST(:outcome AS CHAR), revision = revision + 1, result = CAST(:result AS CHAR),
       result_dropped = CAST(:result_dropped AS SIGNED), message = NULL,
       completed_at = UTC_TIMESTAMP(6), changed_at = UTC_TIMESTAMP(6)
 WHERE scope = CAST(CONVERT(:scope USING utf8mb4) AS BINARY) AND job_type = CAST(CONVERT(:job_type USING utf8mb4) AS BINARY)
   AND `key` = UNHEX(CAST(:key AS CHAR))
   AND token = CAST(:token AS BINARY) AND state = 'claimed' AND lease_until > UTC_TIMESTAMP(6)
   AND transaction_id IS NULL
