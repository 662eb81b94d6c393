-- For `semel repeats`: what is there at all, and what cannot be counted. One scan; locks nothing.
{repeats/kept}
SELECT count(*) AS row_count,
    coalesce(sum(CASE WHEN {present} THEN 0 ELSE 1 END), 0) AS without_reference,
    coalesce(sum(CASE WHEN {present} AND has_time = 0 THEN 1 ELSE 0 END), 0) AS without_time,
    coalesce(sum(CASE WHEN {present} AND has_time = 1 AND at_ms IS NULL THEN 1 ELSE 0 END), 0) AS unreadable_time
FROM delivered
WHERE at_ms IS NULL OR (at_ms >= :since AND at_ms < :until)
