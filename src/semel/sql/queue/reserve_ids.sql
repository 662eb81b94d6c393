-- Takes ids for rows that COPY will store, so that the caller knows each row's id. Caller: store.enqueue. Locks: none.
SELECT nextval(pg_get_serial_sequence('{schema}.jobs', 'id')), statement_timestamp()
  FROM generate_series(1, CAST(:count AS integer))
