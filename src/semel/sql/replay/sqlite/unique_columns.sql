-- The columns of each unique index of a table that holds without a condition, by its name and place. Caller: store.constraints.
-- No row: no such table.
SELECT coalesce(i.name, ''), coalesce(c.name, '')
  FROM sqlite_master AS t
  LEFT JOIN pragma_index_list(t.name) AS i ON i."unique" = 1 AND i.partial = 0
  LEFT JOIN pragma_index_info(i.name) AS c
 WHERE t.type = 'table' AND t.name = CAST(:table AS TEXT)
 ORDER BY 1, c.seqno
