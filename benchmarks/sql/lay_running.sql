-- Jobs that run elsewhere and hold their leases; they sort before those that are due.
INSERT INTO semel.jobs (kind, payload, status, attempts, run_at, locked_until, claim, worker)
SELECT 'laid', jsonb_build_object('i', number), 'running', 1, now() - interval '1 hour', now() + interval '1 hour',
       nextval('semel.claim_seq'), 1
  FROM generate_series(1, %s) AS number
