-- Deletes the rows of children that are gone, or have long been busy. Caller: store.upkeep.
WITH gone AS (DELETE FROM {schema}.sleepers WHERE until < statement_timestamp() - interval '1 hour' RETURNING 1)
SELECT count(*) FROM gone
