-- Extends the records of guarded jobs together with the jobs' leases, from outside the process that runs the handlers.
-- Caller: store.jobs.extend. Locks: the rows, skipping locked ones. Index: operations_job. A claim that has ended, or that
-- its attempt has given up as uncertain, is not revived.
UPDATE {schema}.operations
   SET revision = revision + 1, changed_at = clock_timestamp(),
       lease_until = greatest(lease_until, clock_timestamp() + make_interval(secs => CAST(:lease AS double precision)))
 WHERE id = ANY (ARRAY(
    SELECT operation.id
      FROM unnest(CAST(:ids AS bigint[])) AS job (id)
     CROSS JOIN LATERAL (
        SELECT claimed.id FROM {schema}.operations AS claimed
         WHERE claimed.state = 'claimed' AND claimed.message ->> 'adapter' = 'semel'
           AND CAST(claimed.message ->> 'job_id' AS bigint) = job.id AND claimed.lease_until > clock_timestamp()
           FOR NO KEY UPDATE SKIP LOCKED) AS operation))
RETURNING 1
