-- A table with another's columns, without its constraints. {columns} is quoted names with their types. Caller: store.constraints.
CREATE TABLE {copy} ({columns})
