-- The indexes of the schema: on which table, whether they hold, and every column that key, predicate or expression names.
-- Caller: store.health. Locks: none.
SELECT CAST(class.relname AS text), CAST(indexed.relname AS text),
       index.indisvalid AND index.indisready AND index.indislive, index.indisunique,
       coalesce((SELECT string_agg(DISTINCT CAST(attribute.attname AS text), ',')
                   FROM pg_catalog.pg_depend AS needs
                   JOIN pg_catalog.pg_attribute AS attribute
                     ON attribute.attrelid = needs.refobjid AND attribute.attnum = needs.refobjsubid
                  WHERE needs.classid = CAST('pg_class' AS regclass) AND needs.objid = index.indexrelid
                    AND needs.refclassid = CAST('pg_class' AS regclass) AND needs.refobjid = index.indrelid
                    AND needs.refobjsubid > 0), '')
  FROM pg_catalog.pg_index AS index
  JOIN pg_catalog.pg_class AS class ON class.oid = index.indexrelid
  JOIN pg_catalog.pg_class AS indexed ON indexed.oid = index.indrelid
  JOIN pg_catalog.pg_namespace AS space ON space.oid = indexed.relnamespace
 WHERE space.nspname = trim(both '"' from '{schema}') AND indexed.relkind IN ('r', 'p')
 ORDER BY class.relname
