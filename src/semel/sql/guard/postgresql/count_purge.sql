-- How many operations purge_completed.sql and purge_released.sql would delete in all. Caller: store.guard_upkeep. Locks:
-- none. Index: operations_completed, operations_open.
SELECT (SELECT count(*) FROM {schema}.operations
         WHERE state = 'completed' AND completed_at < clock_timestamp() - make_interval(secs => CAST(:completed AS double precision))),
       (SELECT count(*) FROM {schema}.operations
         WHERE state = 'released' AND changed_at < clock_timestamp() - make_interval(secs => CAST(:released AS double precision)))
