-- A table like another, without its indexes and keys. Caller: store.constraints. Locks: none of the other's rows.
CREATE TABLE {copy} (LIKE {table} INCLUDING DEFAULTS INCLUDING IDENTITY INCLUDING GENERATED INCLUDING CONSTRAINTS)
