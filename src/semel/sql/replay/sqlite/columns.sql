-- A table's columns: name, type, and whether it is the number that counts up. Caller: store.constraints.
SELECT name, type, pk, coalesce(dflt_value, ''), "notnull" FROM pragma_table_info(CAST(:table AS TEXT))
