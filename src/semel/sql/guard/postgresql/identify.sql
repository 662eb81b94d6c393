-- Which database this is, whatever name or pooler leads to it: its name and number, and when and on which port its server began,
-- which no copy of it shares. Caller: store.same_database, for a Row() on a connection of unknown origin. Locks: none.
SELECT CAST(datname AS text), CAST(oid AS text), CAST(extract(epoch FROM pg_postmaster_start_time()) AS text), current_setting('port')
  FROM pg_database
 WHERE datname = current_database()
