-- A person says that it is done, or that it is not to happen. Fenced by the claim that was shown and the revision that was
-- read under the lock; without a token the late worker that comes back leaves evidence. Caller: store.guard_people. Locks:
-- the file, for writing. Index: the key.
UPDATE semel_operations
   SET state = 'completed', outcome = CAST(:outcome AS TEXT), revision = revision + 1,
       result = CAST(:result AS TEXT), message = NULL, held_reason = NULL, token = NULL, transaction_id = NULL,
       completed_at = ((julianday('now') - 2440587.5) * 86400.0), changed_at = ((julianday('now') - 2440587.5) * 86400.0)
 WHERE id = CAST(:id AS INTEGER) AND claim = CAST(:seen AS INTEGER) AND revision = CAST(:revision AS INTEGER)
RETURNING 1
