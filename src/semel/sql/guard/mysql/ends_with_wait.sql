-- Whether a lock that was not had has ended the whole transaction. Caller: store.guard_begin.begin_row. Locks: none.
SELECT @@innodb_rollback_on_timeout
