-- Gives the lock of that name back. Caller: store.same_database. Locks: none.
SELECT RELEASE_LOCK(CAST(:sign AS CHAR))
