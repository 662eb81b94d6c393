-- Runs up to 1,000 ended jobs again, in id order after the batch before. Caller: operate. Locks: the rows, FOR NO KEY UPDATE,
-- skipping locked ones. Index: the key, or jobs_finished where few match.
WITH picked AS MATERIALIZED (
    SELECT id, status
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
       AND id > CAST(:after AS bigint) AND id <= CAST(:last AS bigint)
     ORDER BY id LIMIT 1000
       FOR NO KEY UPDATE SKIP LOCKED
), moved AS (
    UPDATE {schema}.jobs SET status = 'pending', attempts = 0, run_at = statement_timestamp(), result = NULL
     WHERE id = ANY (ARRAY(SELECT id FROM picked))
    RETURNING id
), noted AS (
    INSERT INTO {schema}.job_events (job_id, act, who, why, before, after)
    SELECT id, 'retry', CAST(:who AS text), CAST(:why AS text), status, 'pending' FROM picked ORDER BY id
)
SELECT count(*), max(id) FROM picked
