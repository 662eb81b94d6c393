-- Waits, half a second at most, for one of the turns of turn.sql, and holds it until the transaction ends: with the claim that
-- comes in the same message. Inside the claim's own statement the snapshot would be from before the wait. Caller: store.turns.
SELECT pg_advisory_xact_lock(hashtextextended('{schema}.jobs ' || CAST(:awaited AS text), CAST(:place AS bigint)))
  FROM (SELECT set_config('lock_timeout', '500ms', true)) AS patience
