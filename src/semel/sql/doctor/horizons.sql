-- Who keeps dead rows of this database from being removed: sessions, prepared transactions, replication slots, standbys; for
-- how long (seconds, where that is known) and by how many transactions. Caller: store.health. Locks: none.
SELECT 'session', format('pid %s (%s, %s)', pid, coalesce(nullif(application_name, ''), 'no name'), state),
       CAST(extract(epoch FROM clock_timestamp() - xact_start) AS double precision),
       CAST(greatest(age(backend_xmin), age(backend_xid)) AS bigint), true, CAST(NULL AS bigint)
  FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
   AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
UNION ALL
SELECT 'prepared', gid, CAST(extract(epoch FROM clock_timestamp() - prepared) AS double precision),
       CAST(age(transaction) AS bigint), true, NULL
  FROM pg_prepared_xacts
 WHERE database = current_database()
UNION ALL
SELECT 'slot', CAST(slot_name AS text), NULL, CAST(coalesce(greatest(age(xmin), age(catalog_xmin)), 0) AS bigint), active,
       CASE WHEN pg_is_in_recovery() THEN NULL ELSE CAST(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) AS bigint) END
  FROM pg_replication_slots
 WHERE (database IS NULL OR database = current_database())
UNION ALL
SELECT 'standby', coalesce(nullif(application_name, ''), 'no name'), NULL, CAST(age(backend_xmin) AS bigint), true, NULL
  FROM pg_stat_replication
 WHERE backend_xmin IS NOT NULL
