-- What happened to an operation beside the plain way, oldest first. Caller: store.guard_views. Locks: none. Index:
-- semel_operation_events_operation_id.
SELECT at, event, claim, who, why, detail
  FROM semel_operation_events
 WHERE operation_id = CAST(:id AS INTEGER)
 ORDER BY id
