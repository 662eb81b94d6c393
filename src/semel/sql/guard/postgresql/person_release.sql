-- A person says that it did not happen: the next delivery acts. The claim number rises, so that the late worker's token and
-- whoever else saw the old number are fenced off; what counts towards holding it starts anew. Caller: store.guard_people.
-- Locks: the row, held already. Index: the key.
UPDATE {schema}.operations
   SET state = 'released', revision = revision + 1, claim = claim + 1, token = NULL, acting_at = NULL, unsure_until = NULL,
       transaction_id = NULL, held_reason = NULL, unsure = 0, takeovers = 0, looks = 0,
       reference = CASE WHEN CAST(:new_reference AS boolean) THEN CAST(:reference AS text) ELSE reference END,
       reference_at = CASE WHEN CAST(:new_reference AS boolean) THEN clock_timestamp() ELSE reference_at END,
       generation = generation + CASE WHEN CAST(:new_reference AS boolean) THEN 1 ELSE 0 END,
       changed_at = clock_timestamp()
 WHERE id = CAST(:id AS bigint) AND claim = CAST(:seen AS bigint) AND revision = CAST(:revision AS bigint)
RETURNING 1
