-- The days of the history: whether attached, and whether the whole day is older than the retention. Caller: store.upkeep.
-- Locks: none. An interrupted DETACH leaves a day that is attached but detaching, or detached and not dropped.
SELECT day.relname,
       CASE WHEN part.inhrelid IS NULL THEN 'detached' WHEN part.inhdetachpending THEN 'detaching' ELSE 'attached' END,
       to_date(right(day.relname, 8), 'YYYYMMDD') + 1
           <= (statement_timestamp() - make_interval(secs => CAST(:keep AS double precision))) AT TIME ZONE 'UTC'
  FROM pg_class AS day
  JOIN pg_namespace AS space ON space.oid = day.relnamespace
  LEFT JOIN pg_inherits AS part ON part.inhrelid = day.oid
 WHERE space.nspname = CAST(:schema AS text) AND day.relkind = 'r' AND day.relname ~ '^jobs_done_[0-9]{8}$'
 ORDER BY day.relname
