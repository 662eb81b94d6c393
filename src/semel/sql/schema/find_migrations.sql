-- Whether the schema has semel's table of applied steps. Caller: store.migrate. Locks: none. Reads the catalogue as a
-- table: to_regclass would answer from this session's cache, which waiting for the advisory lock does not bring up to date.
SELECT EXISTS (SELECT FROM pg_catalog.pg_class AS class
                 JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
                WHERE '"' || namespace.nspname || '"' = '{schema}' AND class.relname = 'migrations')
