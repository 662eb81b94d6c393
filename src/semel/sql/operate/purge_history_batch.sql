-- Deletes up to 1,000 jobs of the history, in id order after the batch before. Caller: operate. Locks: the rows, FOR NO KEY
-- UPDATE, skipping locked ones. Index: jobs_done_id in each day's table that is old enough. One event a batch, under its first
-- job: an event for each would weigh as much as the jobs.
WITH picked AS MATERIALIZED (
    SELECT id
      FROM {schema}.jobs_done
     WHERE status = ANY (CAST(:statuses AS text[]))
       AND finished_at < CAST(:finished_before AS timestamptz)
       AND (CAST(:queue AS text) IS NULL OR queue = CAST(:queue AS text))
       AND (CAST(:kind AS text) IS NULL OR kind = CAST(:kind AS text))
       AND id > CAST(:after AS bigint)
     ORDER BY id LIMIT 1000
       FOR NO KEY UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM {schema}.jobs_done
     WHERE id = ANY (ARRAY(SELECT id FROM picked)) AND finished_at < CAST(:finished_before AS timestamptz)
), progress AS (
    DELETE FROM {schema}.job_progress WHERE job_id = ANY (ARRAY(SELECT id FROM picked))
), noted AS (
    INSERT INTO {schema}.job_events (job_id, act, who, why, before)
    SELECT min(id), 'purge', CAST(:who AS text),
           concat_ws(' ', CAST(:why AS text), '(' || count(*) || ' jobs, ' || min(id) || ' to ' || max(id) || ')'),
           array_to_string(CAST(:statuses AS text[]), ', ')
      FROM picked HAVING count(*) > 0
)
SELECT count(*), max(id) FROM picked
