-- Names this installation. Caller: store.jobs.installation, once a worker. Locks: none.
SELECT CAST(id AS text) FROM {schema}.installation
