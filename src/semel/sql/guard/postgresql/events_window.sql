-- The next 1,000 events after an id: how many there are, the last one's id, and how old the youngest is. Caller:
-- store.guard_upkeep. Locks: none. Index: the key.
SELECT count(*), coalesce(max(id), 0), CAST(extract(epoch FROM clock_timestamp() - max(at)) AS double precision)
  FROM (SELECT id, at FROM {schema}.operation_events
         WHERE id > CAST(:after AS bigint) ORDER BY id LIMIT 1000) AS following
