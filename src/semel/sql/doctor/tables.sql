-- The tables that change most: rows, dead rows, size, and how they are vacuumed. Caller: store.health. Locks: none. Rows are
-- the server's own counts and estimates.
SELECT CAST(class.relname AS text), CAST(coalesce(counted.n_live_tup, 0) AS bigint),
       CAST(coalesce(counted.n_dead_tup, 0) AS bigint), pg_table_size(class.oid), pg_indexes_size(class.oid),
       coalesce(array_to_string(class.reloptions, ','), '')
  FROM pg_catalog.pg_class AS class
  JOIN pg_catalog.pg_namespace AS space ON space.oid = class.relnamespace
  LEFT JOIN pg_catalog.pg_stat_user_tables AS counted ON counted.relid = class.oid
 WHERE space.nspname = trim(both '"' from '{schema}') AND class.relkind = 'r' AND class.relname IN ('jobs', 'operations')
 ORDER BY class.relname
