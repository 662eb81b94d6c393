-- Whether a table has a row. Caller: store.constraints. Locks: none.
SELECT 1 FROM {table} LIMIT 1
