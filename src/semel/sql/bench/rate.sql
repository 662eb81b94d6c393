-- How many jobs of a kind ended, and over how many seconds. Caller: store.bench. Locks: none.
SELECT count(*), extract(epoch FROM max(finished_at) - min(finished_at))
  FROM {schema}.jobs_done WHERE kind = CAST(:kind AS text) AND id >= CAST(:first AS bigint)
