-- How long attempts took from their claim to their completion, per job type, and how many completed after their lease had
-- ended. Caller: store.measures. Locks: none. Index: semel_operations_completed.
SELECT job_type, count(*),
       max(CASE WHEN place <= (total * 99 + 99) / 100 THEN seconds END),
       max(seconds), min(completed_at), max(completed_at),
       CAST(sum(CASE WHEN past_lease > 0 THEN 1 ELSE 0 END) AS INTEGER),
       max(past_lease)
  FROM (SELECT job_type, completed_at, seconds, past_lease,
               row_number() OVER (PARTITION BY job_type ORDER BY seconds) AS place,
               count(*) OVER (PARTITION BY job_type) AS total
          FROM (SELECT job_type, completed_at, completed_at - claimed_at AS seconds, completed_at - lease_until AS past_lease
                  FROM semel_operations
                 WHERE state = 'completed' AND outcome = 'acted'
                   AND completed_at >= (julianday('now') - 2440587.5) * 86400.0 - CAST(:within AS REAL)
                   AND (CAST(:job_type AS TEXT) IS NULL OR job_type = CAST(:job_type AS TEXT))) AS acted) AS placed
 GROUP BY job_type
 ORDER BY job_type
