-- Deletes up to 1,000 operations that were released long ago and never claimed again. Caller: store.guard_upkeep. Locks: the
-- rows, skipping locked ones. Index: semel_operations_open.
DELETE gone
  FROM (SELECT id FROM semel_operations
         WHERE state = 'released' AND changed_at < UTC_TIMESTAMP(6) - INTERVAL CAST(:keep AS DECIMAL(20, 6)) SECOND
         ORDER BY id LIMIT 1000 FOR UPDATE SKIP LOCKED) AS old
  STRAIGHT_JOIN semel_operations AS gone ON gone.id = old.id
 WHERE gone.state = 'released'
