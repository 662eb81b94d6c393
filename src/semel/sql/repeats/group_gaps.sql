-- For `semel repeats`: the gaps between deliveries of one reference, to one percent: some thousand groups at most,
-- however many gaps. One scan and a sort; locks nothing.
{repeats/kept},
spaced AS (
    SELECT at_ms - lag(at_ms) OVER (PARTITION BY {columns} ORDER BY at_ms) AS gap_ms
    FROM kept
),
stepped AS (
    SELECT gap_ms,
        CASE WHEN gap_ms < 1000 THEN 1
            WHEN gap_ms < 10000 THEN 10
            WHEN gap_ms < 100000 THEN 100
            WHEN gap_ms < 1000000 THEN 1000
            WHEN gap_ms < 10000000 THEN 10000
            WHEN gap_ms < 86400000 THEN 60000
            WHEN gap_ms < 864000000 THEN 600000
            WHEN gap_ms < 8640000000 THEN 3600000
            ELSE 86400000 END AS step_ms
    FROM spaced
    WHERE gap_ms IS NOT NULL
)
SELECT gap_ms - gap_ms % step_ms AS low_ms, count(*) AS gaps, min(gap_ms) AS least_ms, max(gap_ms) AS most_ms,
    sum(gap_ms) AS total_ms
FROM stepped
GROUP BY gap_ms - gap_ms % step_ms
ORDER BY low_ms
