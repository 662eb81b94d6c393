-- The database's clock, as seconds since 1970. Caller: store.guard_views. Locks: none.
SELECT CAST(extract(epoch FROM clock_timestamp()) AS double precision)
