-- For `semel repeats`: how many references repeat, and how often. One scan, one group a reference; locks nothing.
{repeats/kept},
grouped AS (
    SELECT count(*) AS deliveries, min(at_ms) AS first_ms, max(at_ms) AS last_ms
    FROM kept
    GROUP BY {columns}
)
SELECT coalesce(sum(deliveries), 0) AS deliveries,
    coalesce(sum(CASE WHEN deliveries > 1 THEN 1 ELSE 0 END), 0) AS repeated_references,
    coalesce(sum(deliveries - 1), 0) AS repeats,
    min(first_ms) AS first_ms,
    max(last_ms) AS last_ms
FROM grouped
