-- A line of an operation's history, in the transaction of the move it tells of. Caller: store.guard_request. Locks: none.
INSERT INTO semel_operation_events (operation_id, scope, job_type, label, at, event, claim, who, why, detail)
SELECT id, scope, job_type, label, UTC_TIMESTAMP(6), CAST(:event AS CHAR), CAST(:claim AS SIGNED), CAST(:who AS CHAR), CAST(:why AS CHAR),
       CAST(:detail AS CHAR)
  FROM semel_operations
 WHERE scope = CAST(CONVERT(:scope USING utf8mb4) AS BINARY) AND job_type = CAST(CONVERT(:job_type USING utf8mb4) AS BINARY)
   AND `key` = UNHEX(CAST(:key AS CHAR))
