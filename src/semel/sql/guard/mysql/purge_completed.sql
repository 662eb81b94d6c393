-- Deletes up to 1,000 completed operations past their retention. Caller: store.guard_upkeep. Locks: the rows, skipping locked
-- ones. Index: semel_operations_completed.
DELETE gone
  FROM (SELECT id FROM semel_operations
         WHERE state = 'completed' AND completed_at < UTC_TIMESTAMP(6) - INTERVAL CAST(:keep AS DECIMAL(20, 6)) SECOND
         ORDER BY completed_at LIMIT 1000 FOR UPDATE SKIP LOCKED) AS old
  STRAIGHT_JOIN semel_operations AS gone ON gone.id = old.id
 WHERE gone.state = 'completed'
