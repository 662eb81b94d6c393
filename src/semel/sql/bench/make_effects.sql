-- A table for the effects of a benchmark's operations, empty. Caller: store.bench. PostgreSQL, MySQL and SQLite.
CREATE TABLE IF NOT EXISTS {table} (number BIGINT NOT NULL)
