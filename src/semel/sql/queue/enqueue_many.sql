-- Stores many jobs in one statement; place is the row's position in the caller's list. Caller: store.enqueue. Rows whose
-- unique key is taken (or comes twice in the list) give no row back. Locks: none but its own rows.
WITH wanted AS MATERIALIZED (
    SELECT nextval(pg_get_serial_sequence('{schema}.jobs', 'id')) AS id, listed.*
      FROM jsonb_to_recordset(CAST(:rows AS jsonb))
           AS listed (place integer, kind text, payload jsonb, queue text, priority smallint, max_attempts integer,
                      run_at timestamptz, delay double precision, unique_key text, unique_for double precision,
                      ordering_key text)
     ORDER BY listed.kind, listed.unique_key, listed.place
), stored AS (
    INSERT INTO {schema}.jobs (id, kind, payload, queue, priority, max_attempts, run_at, unique_key, unique_until, ordering_key)
    SELECT id, kind, payload, queue, priority, max_attempts,
           coalesce(run_at, statement_timestamp() + make_interval(secs => delay), now()),
           unique_key, clock_timestamp() + make_interval(secs => unique_for), ordering_key
      FROM wanted
    ON CONFLICT (kind, unique_key) WHERE unique_key IS NOT NULL DO NOTHING
    RETURNING id
)
SELECT wanted.place, stored.id FROM stored JOIN wanted ON wanted.id = stored.id
