-- Whether somebody on this server has the lock of that name. Caller: store.same_database. Locks: none.
SELECT IS_USED_LOCK(CAST(:sign AS CHAR)) IS NOT NULL
