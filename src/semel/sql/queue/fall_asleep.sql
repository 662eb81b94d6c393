-- Notes that a child has nothing to do, so that whoever stores a job for it notifies it. Caller: store.sleep. Locks: its own
-- row. Index: the key. HOT where the row is there.
INSERT INTO {schema}.sleepers (worker, queues, without, reach, until)
VALUES (CAST(:sleeper AS bigint), CAST(:queues AS text[]), CAST(:without AS text[]),
        make_interval(secs => CAST(:reach AS double precision)),
        clock_timestamp() + make_interval(secs => CAST(:valid AS double precision)))
ON CONFLICT (worker) DO UPDATE
   SET queues = excluded.queues, without = excluded.without, reach = excluded.reach, until = excluded.until
