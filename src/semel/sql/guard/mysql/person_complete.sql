-- A person says that it is done, or that it is not to happen. Fenced by the claim that was shown and the revision that was
-- read under the lock; without a token the late worker that comes back leaves evidence. Caller: store.guard_people. Locks:
-- the row, held already. Index: the key.
UPDATE semel_operations
   SET state = 'completed', outcome = CAST(:outcome AS CHAR), revision = revision + 1,
       result = CAST(:result AS CHAR), message = NULL, held_reason = NULL, token = NULL, transaction_id = NULL,
       completed_at = UTC_TIMESTAMP(6), changed_at = UTC_TIMESTAMP(6)
 WHERE id = CAST(:id AS SIGNED) AND claim = CAST(:seen AS SIGNED) AND revision = CAST(:revision AS SIGNED)
