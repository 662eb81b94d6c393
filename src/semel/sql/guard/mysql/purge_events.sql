-- Deletes old events, in a window of ids, of operations that are gone. Caller: store.guard_upkeep. Locks: the rows. Index:
-- the key.
DELETE FROM semel_operation_events
 WHERE id > CAST(:after AS SIGNED) AND id <= CAST(:last AS SIGNED)
   AND at < UTC_TIMESTAMP(6) - INTERVAL CAST(:keep AS DECIMAL(20, 6)) SECOND
   AND NOT EXISTS (SELECT 1 FROM semel_operations AS kept WHERE kept.id = semel_operation_events.operation_id)
