-- Deletes up to 1,000 ended jobs outside the history, in id order after the batch before. Caller: operate. Locks: the rows,
-- FOR NO KEY UPDATE, skipping locked ones. Index: jobs_finished. Finished jobs whose unique key is still remembered stay.
WITH picked AS MATERIALIZED (
    SELECT id, status
      FROM {schema}.jobs
     WHERE NOT live AND status = ANY (CAST(:statuses AS text[]))
       AND finished_at < CAST(:finished_before AS timestamptz)
       AND (CAST(:queue AS text) IS NULL OR queue = CAST(:queue AS text))
       AND (CAST(:kind AS text) IS NULL OR kind = CAST(:kind AS text))
       AND (status NOT IN ('done', 'cancelled') OR unique_key IS NULL OR unique_until <= statement_timestamp())
       AND id > CAST(:after AS bigint)
     ORDER BY id LIMIT 1000
       FOR NO KEY UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM {schema}.jobs WHERE id = ANY (ARRAY(SELECT id FROM picked))
), progress AS (
    DELETE FROM {schema}.job_progress WHERE job_id = ANY (ARRAY(SELECT id FROM picked))
), noted AS (
    INSERT INTO {schema}.job_events (job_id, act, who, why, before)
    SELECT id, 'purge', CAST(:who AS text), CAST(:why AS text), status FROM picked ORDER BY id
)
SELECT count(*), max(id) FROM picked
