-- Jobs of one kind (or of any), or all but those of one kind, wherever they are, oldest first. Caller: testing.jobs. Locks:
-- none. Reads both tables whole: for the small databases of tests.
SELECT id, kind, queue, status, CAST(payload AS text), priority, attempts, max_attempts, run_at, created_at, unique_key,
       ordering_key, last_error
  FROM {schema}.all_jobs
 WHERE (CAST(:kind AS text) IS NULL OR kind = CAST(:kind AS text))
   AND (CAST(:other_than AS text) IS NULL OR kind <> CAST(:other_than AS text))
 ORDER BY id
 LIMIT CAST(:limit AS bigint)
