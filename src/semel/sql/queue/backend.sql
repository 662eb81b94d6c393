-- The server's process behind this connection: a pooler gives its clients a number of its own. Caller: store.direct.
SELECT pg_backend_pid()
