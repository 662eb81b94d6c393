-- The files of a connection: the main one, and those attached. Caller: store.same_database, for a Row(). Locks: none, so that a
-- deferred transaction stays one that has not read.
PRAGMA database_list
