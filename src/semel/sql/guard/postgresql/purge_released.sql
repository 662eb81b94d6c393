-- Deletes up to 1,000 operations that were released long ago and never claimed again. Caller: store.guard_upkeep. Locks: the
-- rows, FOR UPDATE, skipping locked ones: what is being claimed stays. Index: operations_open.
WITH old AS MATERIALIZED (
    SELECT id FROM {schema}.operations
     WHERE state = 'released' AND changed_at < clock_timestamp() - make_interval(secs => CAST(:keep AS double precision))
     ORDER BY id LIMIT 1000 FOR UPDATE SKIP LOCKED
)
DELETE FROM {schema}.operations WHERE id = ANY (ARRAY(SELECT id FROM old)) AND state = 'released'
RETURNING 1
