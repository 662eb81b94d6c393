-- For `semel repeats`: deliveries after a reference's first, by time. One scan and a sort; locks nothing.
{repeats/kept},
numbered AS (
    SELECT at_ms - at_ms % :step_ms AS start_ms,
        row_number() OVER (PARTITION BY {columns} ORDER BY at_ms) AS number_of
    FROM kept
)
SELECT start_ms, count(*) AS repeats, sum(CASE WHEN number_of = 2 THEN 1 ELSE 0 END) AS newly_repeated
FROM numbered
WHERE number_of > 1
GROUP BY start_ms
ORDER BY start_ms
