-- The jobs that hold these unique keys, as find_unique. Caller: store.enqueue, after conflicts. Locks: none. Index:
-- jobs_unique_key.
SELECT listed.place, job.id, job.status,
       job.status IN ('done', 'cancelled') AND coalesce(job.unique_until <= statement_timestamp(), false)
  FROM jsonb_to_recordset(CAST(CAST(:rows AS text) AS jsonb)) AS listed (place integer, kind text, unique_key text)
  JOIN {schema}.jobs AS job ON job.kind = listed.kind AND job.unique_key = listed.unique_key
