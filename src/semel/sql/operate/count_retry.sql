-- How many jobs retry_batch.sql would take in all, and the last of them. Caller: operate. Locks: none. Index: jobs_finished.
SELECT count(*), coalesce(max(id), 0)
  FROM {schema}.jobs
 WHERE NOT live AND status = ANY (CAST(:statuses AS text[]))
       AND (CAST(:queue AS text) IS NULL OR queue = CAST(:queue AS text))
       AND (CAST(:kind AS text) IS NULL OR kind = CAST(:kind AS text))
       AND (CAST(:unique_key AS text) IS NULL OR unique_key = CAST(:unique_key AS text))
       AND (CAST(:error AS text) IS NULL OR position(lower(CAST(:error AS text)) IN lower(last_error)) > 0)
       AND (CAST(:created_before AS timestamptz) IS NULL OR created_at < CAST(:created_before AS timestamptz))
       AND (CAST(:created_after AS timestamptz) IS NULL OR created_at >= CAST(:created_after AS timestamptz))
       AND (CAST(:finished_before AS timestamptz) IS NULL OR finished_at < CAST(:finished_before AS timestamptz))
       AND (CAST(:finished_after AS timestamptz) IS NULL OR finished_at >= CAST(:finished_after AS timestamptz))
