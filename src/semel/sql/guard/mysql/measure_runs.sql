-- How long attempts took from their claim to their completion, per job type, and how many completed after their lease had
-- ended. Caller: store.measures. Locks: none. Index: semel_operations_completed.
SELECT CONVERT(job_type USING utf8mb4), count(*),
       max(CASE WHEN place <= (total * 99 + 99) DIV 100 THEN seconds END),
       max(seconds),
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', min(completed_at)) / 1000000,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', max(completed_at)) / 1000000,
       CAST(sum(CASE WHEN past_lease > 0 THEN 1 ELSE 0 END) AS SIGNED),
       max(past_lease)
  FROM (SELECT job_type, completed_at, seconds, past_lease,
               row_number() OVER (PARTITION BY job_type ORDER BY seconds) AS place,
               count(*) OVER (PARTITION BY job_type) AS total
          FROM (SELECT job_type, completed_at, TIMESTAMPDIFF(MICROSECOND, claimed_at, completed_at) / 1000000 AS seconds,
                       TIMESTAMPDIFF(MICROSECOND, lease_until, completed_at) / 1000000 AS past_lease
                  FROM semel_operations
                 WHERE state = 'completed' AND outcome = 'acted'
                   AND completed_at >= UTC_TIMESTAMP(6) - INTERVAL CAST(:within AS DECIMAL(20, 6)) SECOND
                   AND (CAST(:job_type AS CHAR) IS NULL
                        OR job_type = CAST(CONVERT(:job_type USING utf8mb4) AS BINARY))) AS acted) AS placed
 GROUP BY job_type
 ORDER BY job_type
