-- The history's days: the newest one that is attached, as days from today (UTC), and how many are half detached. Caller:
-- store.health. Locks: none.
SELECT max(to_date(right(CAST(day.relname AS text), 8), 'YYYYMMDD'))
           FILTER (WHERE NOT part.inhdetachpending) - CAST(statement_timestamp() AT TIME ZONE 'UTC' AS date),
       coalesce(bool_or(to_date(right(CAST(day.relname AS text), 8), 'YYYYMMDD')
                        = CAST(statement_timestamp() AT TIME ZONE 'UTC' AS date)), false),
       count(*) FILTER (WHERE part.inhdetachpending)
  FROM pg_catalog.pg_inherits AS part
  JOIN pg_catalog.pg_class AS day ON day.oid = part.inhrelid
 WHERE part.inhparent = CAST('{schema}.jobs_done' AS regclass) AND day.relname ~ '^jobs_done_[0-9]{8}$'
