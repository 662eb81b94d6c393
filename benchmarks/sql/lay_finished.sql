-- Finished jobs in the history, of a kind of their own.
INSERT INTO semel.jobs_done (id, kind, payload, status, attempts, max_attempts, run_at, created_at, queue, priority, claim,
                             crashes, finished_at, errors)
SELECT nextval(pg_get_serial_sequence('semel.jobs', 'id')), 'laid',
       jsonb_build_object('i', number, 'to', 'user' || number || '@example.com'), 'done', 1, 8, now(), now(), 'default', 0,
       nextval('semel.claim_seq'), 0, now(), '[]'
  FROM generate_series(1, %s) AS number
