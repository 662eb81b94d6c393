-- The columns of each unique index of a table, by its name and place. Caller: store.constraints. Locks: none. No row: no such table.
SELECT CASE WHEN s.non_unique = 0 THEN s.index_name ELSE '' END, CASE WHEN s.non_unique = 0 THEN s.column_name ELSE '' END
  FROM information_schema.tables AS t
  LEFT JOIN information_schema.statistics AS s ON s.table_schema = t.table_schema AND s.table_name = t.table_name
 WHERE t.table_schema = DATABASE() AND t.table_name = CONVERT(:table USING utf8mb4)
 ORDER BY s.index_name, s.seq_in_index
