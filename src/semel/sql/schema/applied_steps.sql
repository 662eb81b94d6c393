-- The steps that were applied. Caller: store.migrate. Locks: none.
SELECT version, step, name, applied_at FROM {schema}.migrations ORDER BY version, step DESC
