-- Deletes up to 1,000 completed operations past their retention. Caller: store.guard_upkeep. Locks: the file, for writing.
-- Index: semel_operations_completed.
DELETE FROM semel_operations
 WHERE id IN (SELECT id FROM semel_operations
               WHERE state = 'completed' AND completed_at < (julianday('now') - 2440587.5) * 86400.0 - CAST(:keep AS REAL)
               ORDER BY completed_at LIMIT 1000)
RETURNING 1
