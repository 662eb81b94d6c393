-- My own claim again: its acknowledgement was lost. Caller: store.guard_begin. Locks: the row.
UPDATE {schema}.operations
   SET revision = revision + 1, lease_until = clock_timestamp() + make_interval(secs => CAST(:lease AS double precision)), changed_at = clock_timestamp()
 WHERE scope = CAST(:scope AS text) AND job_type = CAST(:job_type AS text) AND key = decode(CAST(:key AS text), 'hex')
   AND revision = CAST(:revision AS bigint)
RETURNING 1
