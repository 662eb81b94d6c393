-- Deletes ticks that are older than their retention, never a schedule's newest. Caller: store.upkeep. Locks: the rows.
-- Index: schedule_ticks_tick, the key.
WITH old AS MATERIALIZED (
    SELECT schedule, tick FROM {schema}.schedule_ticks AS past
     WHERE tick < statement_timestamp() - make_interval(secs => CAST(:keep AS double precision))
       AND EXISTS (SELECT 1 FROM {schema}.schedule_ticks AS newer
                    WHERE newer.schedule = past.schedule AND newer.tick > past.tick)
     ORDER BY tick LIMIT 1000 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM {schema}.schedule_ticks AS tick USING old
     WHERE tick.schedule = old.schedule AND tick.tick = old.tick RETURNING 1
)
SELECT count(*) FROM gone
