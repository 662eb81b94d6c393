-- A line of an operation's history, in the transaction of the move it tells of. Caller: store.guard_request. Locks: none.
INSERT INTO {schema}.operation_events (operation_id, scope, job_type, label, event, claim, who, why, detail)
SELECT id, scope, job_type, label, CAST(:event AS text), CAST(:claim AS bigint), CAST(:who AS text), CAST(:why AS text),
       CAST(CAST(:detail AS text) AS jsonb)
  FROM {schema}.operations
 WHERE scope = CAST(:scope AS text) AND job_type = CAST(:job_type AS text) AND key = decode(CAST(:key AS text), 'hex')
