-- How many operations purge_completed.sql and purge_released.sql would delete in all. Caller: store.guard_upkeep. Locks:
-- none. Index: semel_operations_completed, semel_operations_open.
SELECT (SELECT count(*) FROM semel_operations
         WHERE state = 'completed' AND completed_at < UTC_TIMESTAMP(6) - INTERVAL CAST(:completed AS DECIMAL(20, 6)) SECOND),
       (SELECT count(*) FROM semel_operations
         WHERE state = 'released' AND changed_at < UTC_TIMESTAMP(6) - INTERVAL CAST(:released AS DECIMAL(20, 6)) SECOND)
