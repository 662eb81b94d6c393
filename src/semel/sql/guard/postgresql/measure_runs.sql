-- How long attempts took from their claim to their completion, per job type, and how many completed after their lease had
-- ended. Caller: store.measures. Locks: none. Index: operations_completed.
SELECT job_type, count(*),
       CAST(max(CASE WHEN place <= (total * 99 + 99) / 100 THEN seconds END) AS double precision),
       CAST(max(seconds) AS double precision),
       CAST(extract(epoch FROM min(completed_at)) AS double precision),
       CAST(extract(epoch FROM max(completed_at)) AS double precision),
       CAST(sum(CASE WHEN past_lease > 0 THEN 1 ELSE 0 END) AS bigint),
       CAST(max(past_lease) AS double precision)
  FROM (SELECT job_type, completed_at, seconds, past_lease,
               row_number() OVER (PARTITION BY job_type ORDER BY seconds) AS place,
               count(*) OVER (PARTITION BY job_type) AS total
          FROM (SELECT job_type, completed_at, extract(epoch FROM completed_at - claimed_at) AS seconds,
                       extract(epoch FROM completed_at - lease_until) AS past_lease
                  FROM {schema}.operations
                 WHERE state = 'completed' AND outcome = 'acted'
                   AND completed_at >= clock_timestamp() - make_interval(secs => CAST(:within AS double precision))
                   AND (CAST(:job_type AS text) IS NULL OR job_type = CAST(:job_type AS text))) AS acted) AS placed
 GROUP BY job_type
 ORDER BY job_type
