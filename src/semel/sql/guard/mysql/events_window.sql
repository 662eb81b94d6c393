-- The next 1,000 events after an id: how many there are, the last one's id, and how old the youngest is. Caller:
-- store.guard_upkeep. Locks: none. Index: the key.
SELECT count(*), coalesce(max(id), 0), TIMESTAMPDIFF(MICROSECOND, max(at), UTC_TIMESTAMP(6)) / 1000000
  FROM (SELECT id, at FROM semel_operation_events
         WHERE id > CAST(:after AS SIGNED) ORDER BY id LIMIT 1000) AS following
