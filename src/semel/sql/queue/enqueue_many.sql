-- Stores many jobs in one statement; place is the row's position in the caller's list, and the smaller id. Caller:
-- store.enqueue. Rows whose unique key is taken (or comes twice in the list) give no row back. Locks: its own rows; waits
-- for an open transaction that has stored one of the keys, in the order of the keys, so that two such lists cannot wait
-- for each other. Index: jobs_unique_key.
WITH listed AS MATERIALIZED (
    SELECT nextval((SELECT CAST(pg_get_serial_sequence('{schema}.jobs', 'id') AS regclass))) AS id,
           place, kind, payload, queue, priority, max_attempts, run_at, delay, unique_key, unique_for, ordering_key
      FROM jsonb_to_recordset(CAST(CAST(:rows AS text) AS jsonb))
           AS listed (place integer, kind text, payload jsonb, queue text, priority smallint, max_attempts integer,
                      run_at timestamptz, delay double precision, unique_key text, unique_for double precision,
                      ordering_key text)
), stored AS (
    INSERT INTO {schema}.jobs (id, kind, payload, queue, priority, max_attempts, run_at, unique_key, unique_until, ordering_key)
    SELECT id, kind, payload, queue, priority, max_attempts,
           coalesce(run_at, statement_timestamp() + make_interval(secs => delay), now()),
           unique_key, clock_timestamp() + make_interval(secs => unique_for), ordering_key
      FROM listed
     ORDER BY kind COLLATE "C", unique_key COLLATE "C", place
    ON CONFLICT (kind, unique_key) WHERE unique_key IS NOT NULL DO NOTHING
    RETURNING id
)
SELECT listed.place, stored.id FROM stored JOIN listed ON listed.id = stored.id
