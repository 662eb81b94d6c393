-- Ends one attempt that ran past its time-out and whose process was stopped for it. An error of the attempt: charged.
-- Caller: store.jobs.time_out (a supervisor). Locks: the row. Index: the key.
-- The delay is the first attempt's; it doubles with each further one, up to an hour: each such attempt costs a process.
UPDATE {schema}.jobs
   SET status = CASE WHEN attempts >= max_attempts THEN 'failed' ELSE 'pending' END,
       run_at = CASE WHEN attempts >= max_attempts THEN run_at
                     ELSE clock_timestamp() + make_interval(
                              secs => least(CAST(:delay AS double precision) * power(2, least(attempts, 40) - 1), 3600)) END,
       last_error = CAST(:summary AS text),
       errors = jsonb_path_query_array(errors, '$[last - 8 to last]')
                || jsonb_build_object('attempt', attempts, 'at', clock_timestamp(), 'type', 'TimedOut',
                                      'message', CAST(:summary AS text))
 WHERE id = CAST(:id AS bigint) AND claim = CAST(:claim AS bigint) AND worker = CAST(:worker AS bigint)
   AND status = 'running'
RETURNING id, status
