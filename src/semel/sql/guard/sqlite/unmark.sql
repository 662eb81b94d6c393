-- Fails where the savepoint is gone: the transaction that claimed has ended midway. Caller: store.guard_end.complete_row.
-- Locks: none.
RELEASE SAVEPOINT {mark}
