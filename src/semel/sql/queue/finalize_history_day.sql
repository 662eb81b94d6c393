-- Finishes an interrupted DETACH. Caller: store.upkeep.
ALTER TABLE {schema}.jobs_done DETACH PARTITION {schema}.{day} FINALIZE
