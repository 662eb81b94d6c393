-- The look-up could not tell: ask again after a while. Caller: store.guard_begin.looked. Locks: the row.
UPDATE {schema}.operations
   SET revision = revision + 1, lease_until = clock_timestamp() + make_interval(secs => CAST(:wait AS double precision)),
       last_error = coalesce(CAST(:error AS text), last_error), changed_at = clock_timestamp()
 WHERE scope = CAST(:scope AS text) AND job_type = CAST(:job_type AS text) AND key = decode(CAST(:key AS text), 'hex')
   AND token = CAST(:token AS text) AND state = 'claimed'
RETURNING 1
