-- The days of the history with their size; the number of jobs is the planner's estimate. Caller: store.views. Locks: none.
SELECT to_date(right(day.relname, 8), 'YYYYMMDD'),
       CASE WHEN day.reltuples >= 0 THEN CAST(day.reltuples AS bigint) END,
       pg_total_relation_size(day.oid)
  FROM pg_catalog.pg_inherits AS part
  JOIN pg_catalog.pg_class AS day ON day.oid = part.inhrelid
 WHERE part.inhparent = CAST('{schema}.jobs_done' AS regclass) AND day.relname ~ '^jobs_done_[0-9]{8}$'
 ORDER BY day.relname DESC
