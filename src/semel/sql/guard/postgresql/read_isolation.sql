-- The isolation of the caller's transaction. Caller: store.guard_begin.begin_row, where an insert gave no row. Locks: none.
SELECT current_setting('transaction_isolation')
