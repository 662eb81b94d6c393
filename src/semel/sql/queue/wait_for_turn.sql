-- Waits, half a second at most, until one of those who have a turn has ended its claim. Caller: store.turns. Locks: one of the
-- turns of turn.sql, until it commits, which is at once: a claim that waited inside would have a snapshot from before.
SELECT pg_advisory_xact_lock(hashtextextended('{schema}.jobs ' || CAST(:turn AS text), CAST(:place AS bigint)))
  FROM (SELECT set_config('lock_timeout', '500ms', true)) AS patience
