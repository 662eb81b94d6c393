-- Deletes up to 1,000 completed operations past their retention. Caller: store.guard_upkeep. Locks: the rows, FOR UPDATE,
-- skipping locked ones. Index: operations_completed.
WITH old AS MATERIALIZED (
    SELECT id FROM {schema}.operations
     WHERE state = 'completed' AND completed_at < clock_timestamp() - make_interval(secs => CAST(:keep AS double precision))
     ORDER BY completed_at LIMIT 1000 FOR UPDATE SKIP LOCKED
)
DELETE FROM {schema}.operations WHERE id = ANY (ARRAY(SELECT id FROM old)) AND state = 'completed'
RETURNING 1
