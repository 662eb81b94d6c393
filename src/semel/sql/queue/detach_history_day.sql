-- Takes a day out of the history without a lock that readers or completions would meet. Caller: store.upkeep, outside a
-- transaction. Waits for readers of the history, up to lock_timeout; interrupted, it is finished by FINALIZE.
ALTER TABLE {schema}.jobs_done DETACH PARTITION {schema}.{day} CONCURRENTLY
