-- Whether the server takes no writes, such as a replica. Caller: store.own_connections, for each new connection. Locks: none.
SELECT CAST(@@read_only AS CHAR) NOT IN ('0', 'OFF') OR CAST(@@innodb_read_only AS CHAR) NOT IN ('0', 'OFF')
