-- Which of the server's databases names without one mean now: USE changes it at any time. Caller: store.same_database, for each
-- Row(). Locks: none.
SELECT CASE WHEN @@lower_case_table_names = 0 THEN DATABASE() ELSE LOWER(DATABASE()) END
