-- Gives the session its own time to wait for locks back. Caller: store.guard_begin.begin_row. Locks: none.
SET innodb_lock_wait_timeout = @semel_lock_wait
