-- Whether the connection takes no writes. Caller: store.own_connections, for each new connection. Locks: none.
SELECT query_only FROM pragma_query_only
