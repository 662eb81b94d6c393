-- The columns of each unique constraint or index of a table that holds without a condition, by its name and place.
-- Caller: store.constraints. Locks: none. Index: the catalogue's own. No row: no such table.
SELECT coalesce(c.relname, ''), coalesce(a.attname, '')
  FROM pg_catalog.pg_class AS t
  LEFT JOIN (pg_catalog.pg_index AS i
             JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
             CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (number, place)
             LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.number)
         ON i.indrelid = t.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND k.place <= i.indnkeyatts
 WHERE t.oid = to_regclass(CAST(:table AS text))
 ORDER BY 1, k.place
