-- Drops what semel keeps in its schema, with every job. Caller: store.export, for the way down. The schema itself stays:
-- it may hold other things, and nothing here cascades to them.
DROP VIEW IF EXISTS {schema}.all_jobs;
DROP TABLE IF EXISTS {schema}.jobs;
DROP TABLE IF EXISTS {schema}.jobs_done;
DROP TABLE IF EXISTS {schema}.job_progress;
DROP TABLE IF EXISTS {schema}.job_events;
DROP TABLE IF EXISTS {schema}.schedules;
DROP TABLE IF EXISTS {schema}.schedule_ticks;
DROP TABLE IF EXISTS {schema}.installation;
DROP TABLE IF EXISTS {schema}.sleepers;
DROP TABLE IF EXISTS {schema}.operation_events;
DROP TABLE IF EXISTS {schema}.operations;
DROP SEQUENCE IF EXISTS {schema}.claim_seq;
DROP FUNCTION IF EXISTS {schema}.jobs_move();
DROP FUNCTION IF EXISTS {schema}.jobs_foreign_claim();
DROP FUNCTION IF EXISTS {schema}.jobs_insert();
DROP FUNCTION IF EXISTS {schema}.make_history_day(date);
DROP FUNCTION IF EXISTS {schema}.jobs_stored();
DROP FUNCTION IF EXISTS {schema}.jobs_due_again();
DROP FUNCTION IF EXISTS {schema}.wake(text, timestamptz);
-- Days of the history that were detached and not dropped yet.
DO $block$
DECLARE
    day regclass;
BEGIN
    FOR day IN SELECT pg_class.oid FROM pg_class
                WHERE relnamespace = to_regnamespace('{schema}') AND relkind = 'r' AND relname ~ '^jobs_done_[0-9]{8}$'
    LOOP
        EXECUTE format('DROP TABLE %s', day);
    END LOOP;
END $block$;
DROP TABLE IF EXISTS {schema}.migrations;
