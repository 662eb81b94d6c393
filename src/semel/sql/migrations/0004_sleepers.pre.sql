-- Schema version 4: who waits for work, so that a new job wakes them; see docs/adr/0012-speed.md.

-- One row a child of a worker. Unlogged: after a crash of the server it is empty, and each child writes its row again.
CREATE UNLOGGED TABLE {schema}.sleepers (
    worker    bigint      PRIMARY KEY,
    queues    text[],
    without   text[]      NOT NULL DEFAULT '{}',
    reach     interval    NOT NULL,
    until     timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
COMMENT ON TABLE {schema}.sleepers IS 'Workers that have nothing to do: whoever stores a job that one of them serves notifies it.';
COMMENT ON COLUMN {schema}.sleepers.queues IS 'The queues that it serves; NULL for all of them but those in "without".';
COMMENT ON COLUMN {schema}.sleepers.reach IS 'It looks by itself as often as this: a job that is due later needs no word.';
COMMENT ON COLUMN {schema}.sleepers.until IS 'A row is worth nothing after this, such as one of a worker that died.';

-- The triggers below run with the rights of whoever stores a job, who may have none but to insert.
GRANT SELECT ON {schema}.sleepers TO PUBLIC;

-- NOTIFY takes a lock of the whole server at the commit, so there is none while everybody works.
CREATE FUNCTION {schema}.wake(of_queue text, at_time timestamptz) RETURNS void LANGUAGE sql AS $function$
    SELECT pg_notify('semel_jobs', '{schema}.' || left(of_queue, 200))
     WHERE EXISTS (SELECT FROM {schema}.sleepers AS sleeper
                    WHERE sleeper.until > statement_timestamp()
                      AND at_time <= statement_timestamp() + sleeper.reach
                      AND (sleeper.queues IS NULL OR of_queue = ANY (sleeper.queues))
                      AND of_queue <> ALL (sleeper.without))
$function$;

CREATE FUNCTION {schema}.jobs_stored() RETURNS trigger LANGUAGE plpgsql AS $function$
BEGIN
    IF EXISTS (SELECT FROM {schema}.sleepers WHERE until > statement_timestamp()) THEN
        PERFORM {schema}.wake(lane.queue, lane.run_at)
           FROM (SELECT queue, min(run_at) AS run_at FROM added WHERE status = 'pending' GROUP BY queue) AS lane;
    END IF;
    RETURN NULL;
END $function$;

CREATE TRIGGER jobs_stored AFTER INSERT ON {schema}.jobs REFERENCING NEW TABLE AS added FOR EACH STATEMENT
    EXECUTE FUNCTION {schema}.jobs_stored();

-- A job that becomes due by an UPDATE: retried by a person, given back, moved forward. A claim names neither column so.
CREATE FUNCTION {schema}.jobs_due_again() RETURNS trigger LANGUAGE plpgsql AS $function$
BEGIN
    PERFORM {schema}.wake(new.queue, new.run_at);
    RETURN new;
END $function$;

CREATE TRIGGER jobs_pending_again BEFORE UPDATE OF status ON {schema}.jobs FOR EACH ROW
    WHEN (new.status = 'pending' AND old.status <> 'pending')
    EXECUTE FUNCTION {schema}.jobs_due_again();

CREATE TRIGGER jobs_moved_forward BEFORE UPDATE OF run_at, queue ON {schema}.jobs FOR EACH ROW
    WHEN (new.status = 'pending' AND old.status = 'pending'
          AND (new.run_at < old.run_at OR new.queue <> old.queue))
    EXECUTE FUNCTION {schema}.jobs_due_again();
