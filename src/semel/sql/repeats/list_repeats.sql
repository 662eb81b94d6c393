-- For `semel repeats`: the references that came more than once, the most frequent first. Two scans; locks nothing.
{repeats/kept},
listed AS (
    SELECT {columns}, count(*) AS deliveries, min(at_ms) AS first_ms, max(at_ms) AS last_ms
    FROM kept
    GROUP BY {columns}
    HAVING count(*) > 1
    ORDER BY count(*) DESC, min(at_ms), {columns}
    LIMIT :most_listed
),
spaced AS (
    SELECT {columns}, deliveries, first_ms, last_ms,
        at_ms - lag(at_ms) OVER (PARTITION BY {columns} ORDER BY at_ms) AS gap_ms
    FROM kept
    JOIN listed USING ({columns})
)
SELECT {columns}, deliveries, first_ms, last_ms, min(gap_ms) AS shortest_gap_ms, max(gap_ms) AS longest_gap_ms
FROM spaced
GROUP BY {columns}, deliveries, first_ms, last_ms
ORDER BY deliveries DESC, first_ms, {columns}
