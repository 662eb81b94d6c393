-- The status of a job outside the history, held still until the transaction ends. Caller: operate. Locks: the row, waiting.
SELECT status FROM {schema}.jobs WHERE id = CAST(:id AS bigint) FOR NO KEY UPDATE
