-- Erases what an operation holds of its payload's data; key, states and numbers stay. Caller: store.guard_people. Locks: the
-- file, for writing. Index: the key.
UPDATE semel_operations
   SET revision = revision + 1, result_dropped = (result_dropped OR result IS NOT NULL), result = NULL, label = NULL,
       last_error = NULL, message = NULL, held_reason = CASE WHEN held_reason IS NOT NULL THEN 'erased' END
 WHERE id = CAST(:id AS INTEGER) AND revision = CAST(:revision AS INTEGER)
RETURNING 1
