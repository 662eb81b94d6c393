-- The server: its version, and what it does at a commit. Caller: store.measures. Locks: none.
SELECT version(), CAST(@@innodb_flush_log_at_trx_commit AS CHAR), CAST(@@innodb_doublewrite AS CHAR), ''
