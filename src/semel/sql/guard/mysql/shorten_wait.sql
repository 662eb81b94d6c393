-- Waits for locks a second at most, from now on; restore_wait ends that. Caller: store.guard_begin.begin_row. Locks: none.
SET @semel_lock_wait = @@innodb_lock_wait_timeout, innodb_lock_wait_timeout = 1
