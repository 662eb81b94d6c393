-- Completes past the lease or out of held, where nobody took over; or what a look-up found. Caller: store.guard_end,
-- store.guard_begin.looked. Locks: the row.
UPDATE semel_operations
   SET state = 'completed', outcome = CAST(:outcome AS CHAR), revision = revision + 1, result = CAST(:result AS CHAR),
       result_dropped = CAST(:result_dropped AS SIGNED), message = NULL,
       held_reason = NULL, completed_at = UTC_TIMESTAMP(6), changed_at = UTC_TIMESTAMP(6)
 WHERE scope = CAST(CONVERT(:scope USING utf8mb4) AS BINARY) AND job_type = CAST(CONVERT(:job_type USING utf8mb4) AS BINARY)
   AND `key` = UNHEX(CAST(:key AS CHAR))
   AND token = CAST(:token AS BINARY) AND state IN ('claimed', 'held') AND transaction_id IS NULL
