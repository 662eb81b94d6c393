-- Jobs that are due tomorrow, of a higher priority than those that are due now.
INSERT INTO semel.jobs (kind, payload, priority, run_at)
SELECT 'laid', jsonb_build_object('i', number, 'to', 'user' || number || '@example.com'), 10,
       now() + interval '1 day' + number * interval '1 ms'
  FROM generate_series(1, %s) AS number
