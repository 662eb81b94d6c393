-- What is known of the first delivery's payload, for one that came with another. Caller: store.guard_begin. Locks: none.
-- Index: operations_once.
SELECT fingerprint, CAST(message AS text)
  FROM {schema}.operations
 WHERE scope = CAST(:scope AS text) AND job_type = CAST(:job_type AS text) AND key = decode(CAST(:key AS text), 'hex')
