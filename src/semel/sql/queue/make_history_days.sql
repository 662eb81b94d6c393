-- Makes the days of the history that are missing, from today (UTC) on. Caller: store.upkeep. Answers how many were made.
SELECT count(*) FILTER (WHERE {schema}.make_history_day(CAST(clock_timestamp() AT TIME ZONE 'UTC' AS date) + day))
  FROM generate_series(0, CAST(:days AS integer)) AS day
