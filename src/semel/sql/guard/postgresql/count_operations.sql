-- How many operations list_operations.sql would list in all, and the newest of them. Caller: store.guard_views. Locks: none.
-- Index: operations_open where only open states are wanted.
SELECT count(*), coalesce(max(id), 0)
  FROM {schema}.operations
{shared/wanted_operations}
