-- What happened to an operation beside the plain way, oldest first. Caller: store.guard_views. Locks: none. Index:
-- semel_operation_events_operation_id.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', at) / 1000000, event, claim, who, why, detail
  FROM semel_operation_events
 WHERE operation_id = CAST(:id AS SIGNED)
 ORDER BY id
