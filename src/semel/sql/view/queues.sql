-- Each queue's jobs outside the history, every one counted once. Caller: store.views. Locks: none. Reads the whole table.
SELECT queue,
       count(*) FILTER (WHERE status = 'pending' AND run_at <= statement_timestamp()),
       count(*) FILTER (WHERE status = 'pending' AND run_at > statement_timestamp() AND attempts = 0),
       count(*) FILTER (WHERE status = 'pending' AND run_at > statement_timestamp() AND attempts > 0),
       count(*) FILTER (WHERE status = 'running' AND locked_until >= statement_timestamp()),
       count(*) FILTER (WHERE status = 'running' AND locked_until < statement_timestamp()),
       count(*) FILTER (WHERE status = 'failed'),
       count(*) FILTER (WHERE status = 'held'),
       count(*) FILTER (WHERE status IN ('done', 'cancelled')),
       statement_timestamp() - min(run_at) FILTER (WHERE status = 'pending' AND run_at <= statement_timestamp())
  FROM {schema}.jobs
 GROUP BY queue
 ORDER BY queue
