-- Takes ids for rows that COPY will store, so that the caller knows each row's id: in one text, which costs a driver less than
-- as many rows. Caller: store.enqueue. Locks: none.
SELECT string_agg(CAST(nextval((SELECT CAST(pg_get_serial_sequence('{schema}.jobs', 'id') AS regclass))) AS text), ' '),
       CAST(extract(epoch FROM statement_timestamp()) AS double precision)
  FROM generate_series(1, CAST(:count AS integer))
