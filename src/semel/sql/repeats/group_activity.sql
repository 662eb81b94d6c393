-- For `semel repeats`: deliveries of any reference by time, which is what chance is reckoned from. One scan; locks nothing.
{repeats/kept},
placed AS (
    SELECT at_ms - at_ms % :step_ms AS start_ms
    FROM kept
)
SELECT start_ms, count(*) AS deliveries
FROM placed
GROUP BY start_ms
ORDER BY start_ms
LIMIT :most_buckets
