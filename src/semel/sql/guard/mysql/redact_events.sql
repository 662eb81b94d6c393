-- Erases labels, errors and evidence from an operation's history; what people decided and why stays. Caller:
-- store.guard_people. Locks: the rows. Index: semel_operation_events_operation_id.
UPDATE semel_operation_events
   SET label = NULL, detail = NULL, why = CASE WHEN who IS NULL THEN NULL ELSE why END
 WHERE operation_id = CAST(:id AS SIGNED)
