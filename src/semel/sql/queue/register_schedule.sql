-- Notes a schedule. since moves only when its definition changes: no tick before it is caught up. Caller: store.schedules.
INSERT INTO {schema}.schedules AS known (name, definition, kind)
VALUES (CAST(:name AS text), CAST(:definition AS text), CAST(:kind AS text))
ON CONFLICT (name) DO UPDATE
   SET definition = excluded.definition, kind = excluded.kind, seen_at = clock_timestamp(),
       since = CASE WHEN known.definition = excluded.definition THEN known.since ELSE clock_timestamp() END
RETURNING since, clock_timestamp()
