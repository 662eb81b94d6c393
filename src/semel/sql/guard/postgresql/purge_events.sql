-- Deletes old events, in a window of ids, of operations that are gone. Caller: store.guard_upkeep. Locks: the rows. Index:
-- the key.
DELETE FROM {schema}.operation_events
 WHERE id > CAST(:after AS bigint) AND id <= CAST(:last AS bigint)
   AND at < clock_timestamp() - make_interval(secs => CAST(:keep AS double precision))
   AND NOT EXISTS (SELECT 1 FROM {schema}.operations AS kept WHERE kept.id = operation_events.operation_id)
RETURNING 1
