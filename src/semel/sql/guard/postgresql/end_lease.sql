-- Lets a claim's lease have ended so many seconds ago, as if the time had passed: for replays, on staging. Caller: store.guard_replay.end_lease.
-- Locks: the row. Index: operations_once.
UPDATE {schema}.operations
   SET lease_until = clock_timestamp() - make_interval(secs => CAST(:before AS double precision)),
       unsure_until = CASE WHEN unsure_until IS NOT NULL THEN clock_timestamp() - make_interval(secs => CAST(:before AS double precision)) END
 WHERE job_type = CAST(:job_type AS text) AND key = decode(CAST(:key AS text), 'hex') AND state = 'claimed'
