-- Takes ids for rows that COPY will store, so that the caller knows each row's id. Caller: store.enqueue. Locks: none.
SELECT nextval((SELECT CAST(pg_get_serial_sequence('{schema}.jobs', 'id') AS regclass))),
       CAST(extract(epoch FROM statement_timestamp()) AS double precision)
  FROM generate_series(1, CAST(:count AS integer))
