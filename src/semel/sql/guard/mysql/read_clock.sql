-- The database's clock, as seconds since 1970. Caller: store.guard_views. Locks: none.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1000000
