-- What the server is. Caller: store.bench. Locks: none.
SELECT current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit'),
       current_setting('shared_buffers')
