-- The effect of one operation: a row. Caller: store.bench. PostgreSQL and SQLite.
INSERT INTO {table} (number) VALUES (CAST(:number AS BIGINT))
