-- Ends one attempt that ran past its time-out and whose process was stopped for it. An error of the attempt: charged.
-- Caller: store.jobs.time_out (a supervisor). Locks: the row. Index: the key.
UPDATE {schema}.jobs
   SET status = CASE WHEN attempts >= max_attempts THEN 'failed' ELSE 'pending' END,
       run_at = CASE WHEN attempts >= max_attempts THEN run_at
                     ELSE clock_timestamp() + make_interval(secs => CAST(:delay AS double precision)) END,
       last_error = CAST(:summary AS text),
       errors = jsonb_path_query_array(errors, '$[last - 8 to last]')
                || jsonb_build_object('attempt', attempts, 'at', clock_timestamp(), 'type', 'TimedOut',
                                      'message', CAST(:summary AS text))
 WHERE id = CAST(:id AS bigint) AND claim = CAST(:claim AS bigint) AND worker = CAST(:worker AS bigint)
   AND status = 'running'
RETURNING id, status
