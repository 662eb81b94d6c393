-- The job that holds a unique key. Caller: store.enqueue, after a conflict, in a statement (and so a snapshot) of its own.
SELECT id, status FROM {schema}.jobs WHERE kind = CAST(:kind AS text) AND unique_key = CAST(:unique_key AS text)
