-- For `semel repeats`: when the listed references came, the first times of each. Two scans; locks nothing.
{repeats/kept},
listed AS (
    SELECT {columns}
    FROM kept
    GROUP BY {columns}
    HAVING count(*) > 1
    ORDER BY count(*) DESC, min(at_ms), {columns}
    LIMIT :most_listed
),
numbered AS (
    SELECT {columns}, at_ms, row_number() OVER (PARTITION BY {columns} ORDER BY at_ms) AS number_of
    FROM kept
    JOIN listed USING ({columns})
)
SELECT {columns}, at_ms
FROM numbered
WHERE number_of <= :most_times
ORDER BY {columns}, number_of
