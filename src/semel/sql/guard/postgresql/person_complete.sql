-- A person says that it is done, or that it is not to happen. Fenced by the claim that was shown and the revision that was
-- read under the lock; without a token the late worker that comes back leaves evidence. Caller: store.guard_people. Locks:
-- the row, held already. Index: the key.
UPDATE {schema}.operations
   SET state = 'completed', outcome = CAST(:outcome AS text), revision = revision + 1,
       result = CAST(CAST(:result AS text) AS jsonb), message = NULL, held_reason = NULL, token = NULL, transaction_id = NULL,
       completed_at = clock_timestamp(), changed_at = clock_timestamp()
 WHERE id = CAST(:id AS bigint) AND claim = CAST(:seen AS bigint) AND revision = CAST(:revision AS bigint)
RETURNING 1
