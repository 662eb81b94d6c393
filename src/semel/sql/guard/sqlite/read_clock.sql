-- The database's clock, as seconds since 1970. Caller: store.guard_views. Locks: none.
SELECT (julianday('now') - 2440587.5) * 86400.0
