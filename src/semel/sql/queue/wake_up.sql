-- Notes that a child works, and needs no word of new jobs. Caller: store.sleep. Locks: its own row. Index: the key. HOT.
UPDATE {schema}.sleepers SET until = '-infinity' WHERE worker = CAST(:sleeper AS bigint)
