-- Takes the unique key from finished jobs whose time is over, before upkeep moves them. Caller: store.enqueue. Locks: those
-- rows, in id order. Index: the key.
UPDATE {schema}.jobs SET unique_key = NULL
 WHERE id IN (SELECT id FROM {schema}.jobs
               WHERE id = ANY (CAST(CAST(:ids AS text) AS bigint[]))
                 AND status IN ('done', 'cancelled') AND unique_until <= statement_timestamp()
               ORDER BY id FOR NO KEY UPDATE)
