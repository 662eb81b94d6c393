-- Nothing happened: the next delivery acts. Row, numbers and reference are kept. Caller: store.guard_end.release. Locks: the file, for writing.
UPDATE semel_operations
   SET state = 'released', revision = revision + 1, token = NULL, acting_at = NULL, unsure_until = NULL,
       transaction_id = NULL, last_error = CAST(:error AS TEXT), changed_at = ((julianday('now') - 2440587.5) * 86400.0)
 WHERE scope = CAST(:scope AS TEXT) AND job_type = CAST(:job_type AS TEXT) AND key = CAST(:key AS BLOB)
   AND token = CAST(:token AS TEXT) AND state = 'claimed'
RETURNING 1
