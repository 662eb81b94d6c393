-- Whether the server takes no writes (a replica), and the isolation that a statement by itself gets. Caller: store.own_connections,
-- for each new connection. Locks: none.
SELECT pg_is_in_recovery() OR CAST(current_setting('transaction_read_only') AS boolean), current_setting('default_transaction_isolation')
