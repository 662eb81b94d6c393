-- Gives a table another name. Caller: store.constraints. Locks: the table, alone.
ALTER TABLE {table} RENAME TO {to}
