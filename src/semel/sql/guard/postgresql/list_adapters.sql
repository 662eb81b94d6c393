-- By which adapters the messages came that the operations of list_operations.sql keep. Caller: store.guard_views. Locks:
-- none. Index: operations_open where only open states are wanted.
SELECT DISTINCT message->>'adapter'
  FROM {schema}.operations
{shared/wanted_operations}
   AND message IS NOT NULL
