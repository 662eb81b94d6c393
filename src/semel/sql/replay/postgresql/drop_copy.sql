-- Removes what make_copy made. Caller: store.constraints. Locks: the table, alone.
DROP TABLE {copy}
