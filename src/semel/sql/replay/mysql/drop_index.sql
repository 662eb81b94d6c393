-- Takes a unique index or the primary key from the copy. {index} is its quoted name. Caller: store.constraints.
-- Locks: the table, alone.
ALTER TABLE {copy} DROP INDEX {index}
