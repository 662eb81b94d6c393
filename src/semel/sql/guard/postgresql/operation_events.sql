-- What happened to an operation beside the plain way, oldest first. Caller: store.guard_views. Locks: none. Index:
-- operation_events_operation_id.
SELECT CAST(extract(epoch FROM at) AS double precision), event, claim, who, why, CAST(detail AS text)
  FROM {schema}.operation_events
 WHERE operation_id = CAST(:id AS bigint)
 ORDER BY id
