-- Takes up to {limit} due jobs of one queue that carry an ordering key, in strict order of their ids within each key.
-- Caller: store.jobs.claim_in_order. Index: jobs_order, then the key. Locks: the first live job of each key looked at and
-- the rows taken, FOR NO KEY UPDATE, skipping locked ones.
-- A key is open where its first live job is due, or its lease ended; so one that runs, or waits to be tried again, closes
-- its key. The lock on that first job is the key's: what another session did to it since this snapshot is seen by the look
-- again under the lock, and then the key is passed over. Behind it follows its share of the limit, at most {run}, without a
-- gap: from the first that is not due, that runs, or that somebody has locked, nothing of the key is taken. Keys are walked
-- from :from on by a loose index scan, which stops where there are enough; the first job of each comes before the second of
-- any.
WITH RECURSIVE head AS (
    (SELECT job.ordering_key, job.id FROM {schema}.jobs AS job
      WHERE job.live AND job.ordering_key IS NOT NULL AND job.queue = CAST(:queue AS text)
        AND job.ordering_key COLLATE "C" >= CAST(:from AS text) COLLATE "C"
      ORDER BY job.ordering_key COLLATE "C", job.id LIMIT 1)
    UNION ALL
    SELECT following.ordering_key, following.id
      FROM head CROSS JOIN LATERAL (
        SELECT job.ordering_key, job.id FROM {schema}.jobs AS job
         WHERE job.live AND job.ordering_key IS NOT NULL AND job.queue = CAST(:queue AS text)
           AND job.ordering_key COLLATE "C" > head.ordering_key COLLATE "C"
         ORDER BY job.ordering_key COLLATE "C", job.id LIMIT 1) AS following
), opened AS MATERIALIZED (
    SELECT head.ordering_key, head.id
      FROM head CROSS JOIN LATERAL (
        SELECT 1 FROM {schema}.jobs AS job
         WHERE job.id = head.id AND job.live AND job.run_at <= statement_timestamp()
           AND (job.status = 'pending' OR job.locked_until < statement_timestamp())
           FOR NO KEY UPDATE SKIP LOCKED) AS locked
     LIMIT {limit}
), wanted AS MATERIALIZED (
    SELECT listed.ordering_key, listed.id, listed.place
      FROM (SELECT opened.ordering_key, run.id,
                   row_number() OVER (PARTITION BY opened.ordering_key ORDER BY run.id) AS place,
                   bool_and(run.due) OVER (PARTITION BY opened.ordering_key ORDER BY run.id) AS due
              FROM opened CROSS JOIN LATERAL (
                SELECT job.id, job.run_at <= statement_timestamp()
                           AND (job.status = 'pending' OR job.locked_until < statement_timestamp()) AS due
                  FROM {schema}.jobs AS job
                 WHERE job.live AND job.ordering_key IS NOT NULL AND job.queue = CAST(:queue AS text)
                   AND job.ordering_key COLLATE "C" = opened.ordering_key COLLATE "C" AND job.id >= opened.id
                 ORDER BY job.id
                 LIMIT (SELECT least({run}, {limit} / greatest(count(*), 1) + 1) FROM opened)) AS run) AS listed
     WHERE listed.due
     ORDER BY listed.place, listed.id
     LIMIT {limit}
), got AS MATERIALIZED (
    SELECT wanted.id, wanted.place, row_number() OVER (PARTITION BY wanted.ordering_key ORDER BY wanted.id) AS reached
      FROM wanted CROSS JOIN LATERAL (
        SELECT 1 FROM {schema}.jobs AS job
         WHERE job.id = wanted.id AND job.live AND job.run_at <= statement_timestamp()
           AND (job.status = 'pending' OR job.locked_until < statement_timestamp())
           FOR NO KEY UPDATE SKIP LOCKED) AS locked
), picked AS MATERIALIZED (
    SELECT id FROM got WHERE reached = place
)
{queue/take}
