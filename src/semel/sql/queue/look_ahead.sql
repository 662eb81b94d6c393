-- In how many seconds the next job of these queues is due, within :reach; and which transactions are open now. One that became
-- due within the last :missed seconds counts: the claim before this may have come too early for it. Caller: store.sleep, before
-- a child waits. Locks: none. Index: jobs_live, one probe a lane.
WITH RECURSIVE {queue/lanes}
SELECT CAST(CAST(pg_snapshot_xmin(snapshot) AS text) AS bigint), CAST(CAST(pg_snapshot_xmax(snapshot) AS text) AS bigint),
       (SELECT CAST(extract(epoch FROM min(ahead.run_at) - clock_timestamp()) AS double precision)
          FROM lane CROSS JOIN LATERAL (
            SELECT job.run_at FROM {schema}.jobs AS job
             WHERE job.live AND job.queue = lane.queue AND job.priority = lane.priority AND job.status = 'pending'
               AND job.run_at > statement_timestamp() - make_interval(secs => CAST(:missed AS double precision))
               AND job.run_at < statement_timestamp() + make_interval(secs => CAST(:reach AS double precision))
             ORDER BY job.run_at, job.id LIMIT 1) AS ahead
         WHERE (CAST(:queues AS text[]) IS NULL OR lane.queue = ANY (CAST(:queues AS text[])))
           AND lane.queue <> ALL (CAST(:without AS text[])))
  FROM pg_current_snapshot() AS snapshot
