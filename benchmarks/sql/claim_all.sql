-- Every job as a worker with the number 1 holds it, under claims that are the jobs' ids.
UPDATE semel.jobs SET status = 'running', attempts = 1, claim = id, worker = 1, locked_until = now() + interval '1 hour'
