-- Lets one of many replicas in for one tick of a schedule, and stores its job in the same statement.
-- Caller: store.schedules. Locks: none but its own rows; a rival for the same tick waits for this transaction's end.
WITH won AS (
    INSERT INTO {schema}.schedule_ticks (schedule, tick)
    VALUES (CAST(:schedule AS text), CAST(:tick AS timestamptz))
    ON CONFLICT (schedule, tick) DO NOTHING
    RETURNING schedule, tick
)
INSERT INTO {schema}.jobs (kind, payload, queue, priority, max_attempts, run_at, meta)
SELECT CAST(:kind AS text), CAST(CAST(:payload AS text) AS jsonb), CAST(:queue AS text), CAST(:priority AS smallint),
       CAST(:max_attempts AS integer), won.tick, jsonb_build_object('schedule', won.schedule, 'tick', won.tick)
  FROM won
RETURNING id
