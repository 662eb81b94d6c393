-- Stores one job that is due at once and has no key, in the caller's transaction. Caller: store.enqueue, most of the time: with
-- no key to look for, the row costs one record of WAL less than in enqueue_keyed. Locks: none but its own row.
INSERT INTO {schema}.jobs (kind, payload, queue, priority, max_attempts)
VALUES (CAST(:kind AS text), CAST(CAST(:payload AS text) AS jsonb), CAST(:queue AS text), CAST(:priority AS smallint),
        CAST(:max_attempts AS integer))
RETURNING id
