-- The next 1,000 events after an id: how many there are, the last one's id, and how old the youngest is. Caller:
-- store.guard_upkeep. Locks: none. Index: the key.
SELECT count(*), coalesce(max(id), 0), (julianday('now') - 2440587.5) * 86400.0 - max(at)
  FROM (SELECT id, at FROM semel_operation_events
         WHERE id > CAST(:after AS INTEGER) ORDER BY id LIMIT 1000) AS following
