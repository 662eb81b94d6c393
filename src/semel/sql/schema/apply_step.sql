-- One numbered file, as it is. Caller: store.migrate, after lock.sql. Locks: what the file says.
{script}
