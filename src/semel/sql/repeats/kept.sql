-- What counts as a delivery: every reference column has a value, and the time can be read and lies within the bounds.
WITH delivered AS (
    SELECT {references}, {moment} AS at_ms, CASE WHEN {time} IS NULL THEN 0 ELSE 1 END AS has_time
    FROM {table}{bounds}
), kept AS (
    SELECT {columns}, at_ms
    FROM delivered
    WHERE {present} AND at_ms IS NOT NULL AND at_ms >= :since AND at_ms < :until
)
