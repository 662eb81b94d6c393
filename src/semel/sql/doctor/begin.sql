-- Makes this transaction one that writes nothing and asks no longer than half a minute at a time. Caller: store.health, first.
-- Locks: none.
SELECT set_config('transaction_read_only', 'on', true), set_config('statement_timeout', '30s', true),
       set_config('lock_timeout', '1s', true)
