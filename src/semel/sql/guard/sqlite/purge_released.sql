-- Deletes up to 1,000 operations that were released long ago and never claimed again. Caller: store.guard_upkeep. Locks: the
-- file, for writing. Index: semel_operations_open.
DELETE FROM semel_operations
 WHERE id IN (SELECT id FROM semel_operations
               WHERE state = 'released' AND changed_at < (julianday('now') - 2440587.5) * 86400.0 - CAST(:keep AS REAL)
               ORDER BY id LIMIT 1000)
RETURNING 1
