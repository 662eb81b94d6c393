-- Nothing happened: the next delivery acts. Row, numbers and reference are kept. Caller: store.guard_end.release. Locks: the row.
UPDATE {schema}.operations
   SET state = 'released', revision = revision + 1, token = NULL, acting_at = NULL, unsure_until = NULL,
       transaction_id = NULL, last_error = CAST(:error AS text), changed_at = clock_timestamp()
 WHERE scope = CAST(:scope AS text) AND job_type = CAST(:job_type AS text) AND key = decode(CAST(:key AS text), 'hex')
   AND token = CAST(:token AS text) AND state = 'claimed'
RETURNING 1
