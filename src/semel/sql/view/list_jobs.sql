-- A page of jobs, newest first, from the table and the history. Caller: store.views. Locks: none. Index: the keys by id, newest
-- first; jobs_live or jobs_finished where few match; a day's table is left out where its date cannot match.
-- {live} is true, live or NOT live; {history} is true or false: what the wanted statuses leave to look at.
WITH page AS (
    (SELECT id, kind, queue, status, priority, attempts, max_attempts, crashes, run_at, locked_until, created_at,
            finished_at, unique_key, last_error
       FROM {schema}.jobs
      WHERE {live}
        AND (CAST(:statuses AS text[]) IS NULL OR status = ANY (CAST(:statuses AS text[])))
        AND (CAST(:queue AS text) IS NULL OR queue = CAST(:queue AS text))
        AND (CAST(:kind AS text) IS NULL OR kind = CAST(:kind AS text))
        AND (CAST(:unique_key AS text) IS NULL OR unique_key = CAST(:unique_key AS text))
        AND (CAST(:error AS text) IS NULL OR position(lower(CAST(:error AS text)) IN lower(last_error)) > 0)
        AND (CAST(:created_before AS timestamptz) IS NULL OR created_at < CAST(:created_before AS timestamptz))
        AND (CAST(:created_after AS timestamptz) IS NULL OR created_at >= CAST(:created_after AS timestamptz))
        AND (CAST(:finished_before AS timestamptz) IS NULL OR finished_at < CAST(:finished_before AS timestamptz))
        AND (CAST(:finished_after AS timestamptz) IS NULL OR finished_at >= CAST(:finished_after AS timestamptz))
        AND (CAST(:before_id AS bigint) IS NULL OR id < CAST(:before_id AS bigint))
      ORDER BY id DESC LIMIT CAST(:limit AS integer))
    UNION ALL
    (SELECT id, kind, queue, status, priority, attempts, max_attempts, crashes, run_at, locked_until, created_at,
            finished_at, unique_key, last_error
       FROM {schema}.jobs_done
      WHERE {history}
        AND (CAST(:statuses AS text[]) IS NULL OR status = ANY (CAST(:statuses AS text[])))
        AND (CAST(:queue AS text) IS NULL OR queue = CAST(:queue AS text))
        AND (CAST(:kind AS text) IS NULL OR kind = CAST(:kind AS text))
        AND (CAST(:unique_key AS text) IS NULL OR unique_key = CAST(:unique_key AS text))
        AND (CAST(:error AS text) IS NULL OR position(lower(CAST(:error AS text)) IN lower(last_error)) > 0)
        AND (CAST(:created_before AS timestamptz) IS NULL OR created_at < CAST(:created_before AS timestamptz))
        AND (CAST(:created_after AS timestamptz) IS NULL
             OR (created_at >= CAST(:created_after AS timestamptz) AND finished_at >= CAST(:created_after AS timestamptz)))
        AND (CAST(:finished_before AS timestamptz) IS NULL OR finished_at < CAST(:finished_before AS timestamptz))
        AND (CAST(:finished_after AS timestamptz) IS NULL OR finished_at >= CAST(:finished_after AS timestamptz))
        AND (CAST(:before_id AS bigint) IS NULL OR id < CAST(:before_id AS bigint))
      ORDER BY id DESC LIMIT CAST(:limit AS integer))
)
SELECT page.*, progress.fraction, progress.message
  FROM (SELECT * FROM page ORDER BY id DESC LIMIT CAST(:limit AS integer)) AS page
  LEFT JOIN {schema}.job_progress AS progress ON progress.job_id = page.id
 ORDER BY page.id DESC
