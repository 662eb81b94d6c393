-- A line of an operation's history, in the transaction of the move it tells of. Caller: store.guard_request. Locks: none.
INSERT INTO semel_operation_events (operation_id, scope, job_type, label, at, event, claim, who, why, detail)
SELECT id, scope, job_type, label, ((julianday('now') - 2440587.5) * 86400.0), CAST(:event AS TEXT), CAST(:claim AS INTEGER), CAST(:who AS TEXT), CAST(:why AS TEXT),
       CAST(:detail AS TEXT)
  FROM semel_operations
 WHERE scope = CAST(:scope AS TEXT) AND job_type = CAST(:job_type AS TEXT) AND key = CAST(:key AS BLOB)
RETURNING 1
