-- Deletes old events, in a window of ids, of operations that are gone. Caller: store.guard_upkeep. Locks: the file, for
-- writing. Index: the key.
DELETE FROM semel_operation_events
 WHERE id > CAST(:after AS INTEGER) AND id <= CAST(:last AS INTEGER) AND at < (julianday('now') - 2440587.5) * 86400.0 - CAST(:keep AS REAL)
   AND NOT EXISTS (SELECT 1 FROM semel_operations AS kept WHERE kept.id = semel_operation_events.operation_id)
RETURNING 1
