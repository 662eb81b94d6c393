-- The time that decides. Caller: store.schedules. Locks: none.
SELECT clock_timestamp()
