-- The library: its version; what it does at a commit is the connection's, and said there. Caller: store.measures. Locks: none.
SELECT sqlite_version(), '', '', ''
