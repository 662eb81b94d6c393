-- By which adapters the messages came that the operations of list_operations.sql keep. Caller: store.guard_views. Locks:
-- none. Index: semel_operations_open where only open states are wanted.
SELECT DISTINCT JSON_UNQUOTE(JSON_EXTRACT(message, '$.adapter'))
  FROM semel_operations
{shared/wanted_operations}
   AND message IS NOT NULL
