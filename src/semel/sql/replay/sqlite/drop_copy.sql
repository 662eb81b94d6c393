-- Removes the copy. Caller: store.constraints. Locks: the file, for writing.
DROP TABLE {copy}
