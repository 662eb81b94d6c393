-- The server: its version, what it does at a commit, its connections, whether it is a replica and who follows it, and whether
-- this role sees what others do. Caller: store.health. Locks: none.
SELECT CAST(current_setting('server_version_num') AS integer), current_setting('fsync'),
       current_setting('synchronous_commit'), current_setting('full_page_writes'), current_setting('autovacuum'),
       current_setting('track_counts'), pg_is_in_recovery(), CAST(current_setting('max_connections') AS integer),
       CAST(current_setting('superuser_reserved_connections') AS integer)
           + CAST(coalesce(current_setting('reserved_connections', true), '0') AS integer),
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
       (SELECT count(*) FROM pg_stat_activity
         WHERE backend_type = 'client backend' AND application_name LIKE 'semel %' AND pid <> pg_backend_pid()),
       (SELECT count(*) FROM pg_stat_replication), current_setting('synchronous_standby_names'),
       pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')
           OR (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
