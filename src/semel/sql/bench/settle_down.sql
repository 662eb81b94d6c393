-- Fresh statistics and no dead rows before a measurement. Caller: store.bench, outside a transaction.
VACUUM (ANALYZE) {schema}.jobs
