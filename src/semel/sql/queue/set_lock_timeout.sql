-- Caller: store.upkeep, on its own connection, before it changes the history's days.
SELECT set_config('lock_timeout', '2s', false)
