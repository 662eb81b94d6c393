-- Marks the caller's transaction: the savepoint is there as long as this transaction is, and gone with its commit or rollback.
-- Caller: store.guard_begin.begin_row, after it wrote the claim. Locks: none.
SAVEPOINT {mark}
