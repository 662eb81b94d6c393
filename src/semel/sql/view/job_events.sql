-- What people did to one job, oldest first; of more than 100 the last. Caller: store.views. Locks: none.
-- Index: job_events_job_id.
SELECT at, act, who, why, before, after
  FROM (SELECT * FROM {schema}.job_events WHERE job_id = CAST(:id AS bigint) ORDER BY id DESC LIMIT 100) AS newest
 ORDER BY id
