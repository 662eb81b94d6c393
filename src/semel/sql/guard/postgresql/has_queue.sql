-- Whether the queue's tables are beside the operations: the guard can be there alone. Caller: operate.held_jobs. Locks: none.
SELECT to_regclass('{schema}.jobs') IS NOT NULL
