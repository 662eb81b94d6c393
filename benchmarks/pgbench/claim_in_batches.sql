-- Claim a hundred, finish a hundred, a commit each: the textbook's queue.
WITH picked AS (SELECT id FROM jobs WHERE status = 'pending' AND run_at <= now() ORDER BY run_at LIMIT 100 FOR UPDATE SKIP LOCKED), taken AS (UPDATE jobs SET status = 'running', attempts = attempts + 1, locked_until = now() + interval '60 s' FROM picked WHERE jobs.id = picked.id RETURNING jobs.id, jobs.kind, jobs.payload) SELECT array_agg(id)::text AS ids, count(payload) AS n FROM taken \gset
UPDATE jobs SET status = 'done', locked_until = NULL WHERE id = any ((:ids)::bigint[]);
