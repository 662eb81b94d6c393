-- Notes a schedule. since moves only when its definition changes: no tick before it is caught up. Answers from when on
-- ticks may be missing: since, or the newest tick that got its job. Caller: store.schedules. Index: schedule_ticks' key.
INSERT INTO {schema}.schedules AS known (name, definition, kind)
VALUES (CAST(:name AS text), CAST(:definition AS text), CAST(:kind AS text))
ON CONFLICT (name) DO UPDATE
   SET definition = excluded.definition, kind = excluded.kind, seen_at = clock_timestamp(),
       since = CASE WHEN known.definition = excluded.definition THEN known.since ELSE clock_timestamp() END
RETURNING greatest(since, (SELECT max(tick) FROM {schema}.schedule_ticks WHERE schedule = known.name)), clock_timestamp()
