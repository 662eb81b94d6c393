-- Deletes what people did to jobs once it is older than its retention. Caller: store.upkeep. Locks: the rows, skipping
-- locked ones. Index: job_events_at.
WITH old AS MATERIALIZED (
    SELECT id FROM {schema}.job_events
     WHERE at < statement_timestamp() - make_interval(secs => CAST(:keep AS double precision))
     ORDER BY at LIMIT 1000 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM {schema}.job_events WHERE id = ANY (ARRAY(SELECT id FROM old)) RETURNING 1
)
SELECT count(*) FROM gone
