-- The server: its version as a number, and what it does at a commit. Caller: store.measures. Locks: none.
SELECT current_setting('server_version_num'), current_setting('fsync'), current_setting('synchronous_commit'),
       current_setting('full_page_writes')
