-- The unique indexes of the operations that hold now: their columns in order, with a comma between. Caller: store.measures.
-- Locks: none. No row: the table is not there; a row without columns: it has none.
SELECT coalesce(string_agg(listed.columns, ';'), '')
  FROM pg_catalog.pg_class AS class
  JOIN pg_catalog.pg_namespace AS space ON space.oid = class.relnamespace
  LEFT JOIN LATERAL (
        SELECT (SELECT string_agg(CAST(attribute.attname AS text), ',' ORDER BY place.number)
                  FROM unnest(index.indkey) WITH ORDINALITY AS place (attnum, number)
                  JOIN pg_catalog.pg_attribute AS attribute
                    ON attribute.attrelid = index.indrelid AND attribute.attnum = place.attnum
                 WHERE place.number <= index.indnkeyatts) AS columns
          FROM pg_catalog.pg_index AS index
         WHERE index.indrelid = class.oid AND index.indisunique AND index.indisvalid AND index.indislive
           AND index.indpred IS NULL AND index.indexprs IS NULL) AS listed ON true
 WHERE class.relname = 'operations' AND space.nspname = trim(both '"' from '{schema}')
 GROUP BY class.oid
