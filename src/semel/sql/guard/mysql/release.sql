-- Nothing happened: the next delivery acts. Row, numbers and reference are kept. Caller: store.guard_end.release. Locks: the row.
UPDATE semel_operations
   SET state = 'released', revision = revision + 1, token = NULL, acting_at = NULL, unsure_until = NULL,
       transaction_id = NULL, last_error = CAST(:error AS CHAR), changed_at = UTC_TIMESTAMP(6)
 WHERE scope = CAST(CONVERT(:scope USING utf8mb4) AS BINARY) AND job_type = CAST(CONVERT(:job_type USING utf8mb4) AS BINARY)
   AND `key` = UNHEX(CAST(:key AS CHAR))
   AND token = CAST(:token AS BINARY) AND state = 'claimed'
