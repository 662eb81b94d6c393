-- The unique indexes of the operations: their columns in order, with a comma between. Caller: store.measures. Locks: none.
-- No row: the table is not there; a row without columns: it has none.
SELECT coalesce(group_concat(listed.columns, ';'), '')
  FROM sqlite_master AS made
  LEFT JOIN (SELECT (SELECT group_concat(name, ',') FROM (SELECT part.name FROM pragma_index_info(list.name) AS part ORDER BY part.seqno)) AS columns
               FROM pragma_index_list('semel_operations') AS list
              WHERE list."unique" = 1 AND list.partial = 0) AS listed ON 1
 WHERE made.type = 'table' AND made.name = 'semel_operations'
 GROUP BY made.name
