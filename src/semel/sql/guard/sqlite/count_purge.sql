-- How many operations purge_completed.sql and purge_released.sql would delete in all. Caller: store.guard_upkeep. Locks:
-- none. Index: semel_operations_completed, semel_operations_open.
SELECT (SELECT count(*) FROM semel_operations
         WHERE state = 'completed' AND completed_at < (julianday('now') - 2440587.5) * 86400.0 - CAST(:completed AS REAL)),
       (SELECT count(*) FROM semel_operations
         WHERE state = 'released' AND changed_at < (julianday('now') - 2440587.5) * 86400.0 - CAST(:released AS REAL))
