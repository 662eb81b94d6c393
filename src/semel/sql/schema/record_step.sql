-- Notes a step as applied. Caller: store.migrate, in the transaction that applied it.
INSERT INTO {schema}.migrations (version, step, name)
VALUES (CAST(:version AS integer), CAST(:step AS text), CAST(:name AS text))
