-- The unique indexes of the operations: their columns in order, with a comma between. Caller: store.measures. Locks: none.
-- No row: the table is not there; a row without columns: it has none.
SELECT coalesce(group_concat(listed.columns SEPARATOR ';'), '')
  FROM information_schema.tables AS made
  LEFT JOIN (SELECT index_name, group_concat(lower(column_name) ORDER BY seq_in_index SEPARATOR ',') AS columns
               FROM information_schema.statistics
              WHERE table_schema = database() AND table_name = 'semel_operations' AND non_unique = 0
              GROUP BY index_name) AS listed ON true
 WHERE made.table_schema = database() AND made.table_name = 'semel_operations'
 GROUP BY made.table_name
