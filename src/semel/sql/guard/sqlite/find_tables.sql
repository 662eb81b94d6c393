-- The files that have the guard's tables, in the order in which SQLite looks for a table. Caller: store.same_database, where the
-- main file is not the guard's. Locks: the files, for reading.
SELECT file FROM pragma_database_list AS files
 WHERE EXISTS (SELECT 1 FROM pragma_table_info('semel_operations', files.name))
 ORDER BY CASE name WHEN 'temp' THEN -1 ELSE seq END
