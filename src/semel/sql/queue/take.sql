-- No statement by itself: how the rows that `picked` names are taken for one attempt each. The claims take by it.
UPDATE {schema}.jobs
   SET status = CASE WHEN status = 'running' AND crashes + 1 >= CAST(:max_crashes AS smallint)
                     THEN 'failed' ELSE 'running' END,
       attempts = attempts + CASE WHEN status = 'pending' AND attempts < 1000000000 THEN 1 ELSE 0 END,
       crashes = CASE WHEN status = 'running' THEN least(crashes + 1, 32767) WHEN attempts = 0 THEN 0 ELSE crashes END,
       last_error = CASE WHEN status = 'running' AND crashes + 1 >= CAST(:max_crashes AS smallint)
                         THEN 'its worker died ' || (crashes + 1) || ' times while this job ran' ELSE last_error END,
       errors = CASE WHEN status = 'running'
                     THEN jsonb_path_query_array(errors, '$[last - 8 to last]')
                          || jsonb_build_object('attempt', attempts, 'at', clock_timestamp(), 'type', 'WorkerDied',
                                                'message', 'its lease ended while this attempt ran')
                     ELSE errors END,
       claim = nextval('{schema}.claim_seq'),
       worker = CAST(:worker AS bigint),
       locked_until = clock_timestamp() + make_interval(secs => CAST(:lease AS double precision))
 WHERE id = ANY (ARRAY(SELECT id FROM picked))
RETURNING id, claim, status, kind, CAST(payload AS text) AS payload, attempts, max_attempts, crashes, queue, priority,
          ordering_key, greatest(run_at, CAST('0002-01-01 00:00:00+00' AS timestamptz)) AS run_at
