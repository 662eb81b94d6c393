-- Takes a lock that nobody else knows of, as a sign that this server is asked: no number of a server differs from its copies' for
-- sure. Caller: store.same_database, for a Row() on a connection of unknown origin. Locks: one of the server's, by that name.
SELECT GET_LOCK(CAST(:sign AS CHAR), 0)
