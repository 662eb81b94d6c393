-- The results of some jobs that have ended. Caller: store.bench. Locks: none.
SELECT id, CAST(result AS double precision) FROM {schema}.jobs_done
 WHERE id = ANY (CAST(CAST(:ids AS text) AS bigint[])) ORDER BY id
