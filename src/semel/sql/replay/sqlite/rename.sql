-- Gives a table another name. Caller: store.constraints. Locks: the file, for writing.
ALTER TABLE {table} RENAME TO {to}
