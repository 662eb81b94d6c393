-- How many jobs purge_batch.sql and purge_history_batch.sql would delete in all, and the last of them. Caller: operate.
-- Locks: none. Index: jobs_finished; reads the history's days that are old enough.
SELECT (SELECT count(*) FROM {schema}.jobs
         WHERE NOT live AND status = ANY (CAST(:statuses AS text[]))
           AND finished_at < CAST(:finished_before AS timestamptz)
           AND (CAST(:queue AS text) IS NULL OR queue = CAST(:queue AS text))
           AND (CAST(:kind AS text) IS NULL OR kind = CAST(:kind AS text))
           AND (status NOT IN ('done', 'cancelled') OR unique_key IS NULL OR unique_until <= statement_timestamp())),
       (SELECT count(*) FROM {schema}.jobs_done
         WHERE status = ANY (CAST(:statuses AS text[]))
           AND finished_at < CAST(:finished_before AS timestamptz)
           AND (CAST(:queue AS text) IS NULL OR queue = CAST(:queue AS text))
           AND (CAST(:kind AS text) IS NULL OR kind = CAST(:kind AS text)))
