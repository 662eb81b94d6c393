-- Renews the lease of an attempt that still holds its claim. Caller: store.guard_end.extend. Locks: the row, waiting half a second at most.
UPDATE {schema}.operations
   SET revision = revision + 1, changed_at = clock_timestamp(),
       lease_until = clock_timestamp() + make_interval(secs => CAST(:lease AS double precision))
  FROM (SELECT set_config('lock_timeout', '500ms', true)) AS patience
 WHERE scope = CAST(:scope AS text) AND job_type = CAST(:job_type AS text) AND key = decode(CAST(:key AS text), 'hex')
   AND token = CAST(:token AS text) AND state = 'claimed'
RETURNING 1
