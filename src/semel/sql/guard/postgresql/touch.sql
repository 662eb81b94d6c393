-- Something came to the record's history that a person who looked before does not know. Caller: store.guard_end. Locks:
-- the row, held already. Index: the key.
UPDATE {schema}.operations
   SET revision = revision + 1
 WHERE scope = CAST(:scope AS text) AND job_type = CAST(:job_type AS text) AND key = decode(CAST(:key AS text), 'hex')
RETURNING 1
