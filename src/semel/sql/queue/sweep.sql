-- The lanes (queue, priority) of these queues, each with its first job that a claim may take now, if there is one; when this
-- was asked; and for how many seconds the server has looked. A row in any case, of NULLs where there is no lane.
-- Caller: store.marks.sweep. Locks: none. Index: jobs_live, from the beginning of each lane: dead entries and running jobs in
-- front are read, which a claim from a mark spares itself. A run_at that no driver can read comes as NULL beside its id.
WITH RECURSIVE {queue/lanes}
SELECT found.queue, found.priority, found.run_at, found.id,
       asked.at, CAST(extract(epoch FROM clock_timestamp() - asked.at) AS double precision)
  FROM (SELECT statement_timestamp() AS at) AS asked LEFT JOIN (
        SELECT lane.queue, lane.priority, first.id,
               CASE WHEN first.run_at > CAST('0002-01-01 00:00:00+00' AS timestamptz) THEN first.run_at END AS run_at
          FROM lane LEFT JOIN LATERAL (
                SELECT job.run_at, job.id FROM {schema}.jobs AS job
                 WHERE job.live AND job.queue = lane.queue AND job.priority = lane.priority
                   AND (job.run_at, job.id) >= (lane.run_at, lane.id) AND job.run_at <= statement_timestamp()
                   AND (job.status = 'pending' OR job.locked_until < statement_timestamp())
                 ORDER BY job.run_at, job.id
                 LIMIT 1) AS first ON true
         WHERE (CAST(:queues AS text[]) IS NULL OR lane.queue = ANY (CAST(:queues AS text[])))
           AND lane.queue <> ALL (CAST(:without AS text[]))) AS found ON true
