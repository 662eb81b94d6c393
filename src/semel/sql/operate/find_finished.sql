-- The status of a job in the history. Caller: operate. Locks: none. Index: jobs_done_id in each day's table.
SELECT status FROM {schema}.jobs_done WHERE id = CAST(:id AS bigint) LIMIT 1
