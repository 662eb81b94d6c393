-- The job that holds a unique key, and whether its time is over: it is finished, and upkeep has not moved it yet. Caller:
-- store.enqueue, after a conflict, in a statement (and so a snapshot) of its own. Locks: none. Index: jobs_unique_key.
SELECT id, status, status IN ('done', 'cancelled') AND coalesce(unique_until <= statement_timestamp(), false)
  FROM {schema}.jobs
 WHERE kind = CAST(:kind AS text) AND unique_key = CAST(:unique_key AS text)
