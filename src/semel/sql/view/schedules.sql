-- The schedules that workers noted, with their newest tick. Caller: store.views. Locks: none. Index: the key of schedule_ticks.
SELECT schedule.name, schedule.definition, schedule.kind, schedule.since, schedule.seen_at,
       (SELECT max(tick.tick) FROM {schema}.schedule_ticks AS tick WHERE tick.schedule = schedule.name)
  FROM {schema}.schedules AS schedule
 ORDER BY schedule.name
