-- The jobs that hold these unique keys, as find_unique. Caller: store.enqueue, after conflicts. Locks: none. Index:
-- jobs_unique_key, once for each key, whatever the planner thinks of the list's length.
SELECT listed.place, job.id, job.status,
       job.status IN ('done', 'cancelled') AND coalesce(job.unique_until <= statement_timestamp(), false)
  FROM jsonb_to_recordset(CAST(CAST(:rows AS text) AS jsonb)) AS listed (place integer, kind text, unique_key text)
 CROSS JOIN LATERAL (
    SELECT id, status, unique_until FROM {schema}.jobs AS owned
     WHERE owned.kind = listed.kind AND owned.unique_key = listed.unique_key LIMIT 1) AS job
