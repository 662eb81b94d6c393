-- Stores one job that has a key or a time of its own, in the caller's transaction. Caller: store.enqueue. Locks: none but its
-- own row. No row back: the unique key is taken.
INSERT INTO {schema}.jobs (kind, payload, queue, priority, max_attempts, run_at, unique_key, unique_until, ordering_key)
VALUES (CAST(:kind AS text), CAST(CAST(:payload AS text) AS jsonb), CAST(:queue AS text), CAST(:priority AS smallint),
        CAST(:max_attempts AS integer),
        coalesce(CAST(:run_at AS timestamptz),
                 statement_timestamp() + make_interval(secs => CAST(:delay AS double precision)), now()),
        CAST(:unique_key AS text),
        clock_timestamp() + make_interval(secs => CAST(:unique_for AS double precision)),
        CAST(:ordering_key AS text))
ON CONFLICT (kind, unique_key) WHERE unique_key IS NOT NULL DO NOTHING
RETURNING id
