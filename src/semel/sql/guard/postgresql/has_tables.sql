-- Whether the guard's table is there. Caller: store.guard_tables. Locks: none.
SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = CAST(:schema AS text) AND tablename = 'operations'
