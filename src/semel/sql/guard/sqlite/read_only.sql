-- Whether the connection takes no writes. Caller: store.own_connections, for each new connection. Locks: none.
PRAGMA query_only
