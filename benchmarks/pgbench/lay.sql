INSERT INTO jobs (kind, payload, run_at)
SELECT 'nothing', jsonb_build_object('i', number, 'to', 'user' || number || '@example.com'),
       now() - interval '1 hour' + number * interval '1 ms'
  FROM generate_series(1, %s) AS number
