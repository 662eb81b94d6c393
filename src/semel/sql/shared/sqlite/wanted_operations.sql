-- No statement by itself: which operations a person asks for. list_operations.sql, count_operations.sql and
-- list_adapters.sql have it; states is theirs.
 WHERE state IN ({states})
   AND (CAST(:job_type AS TEXT) IS NULL OR job_type = CAST(:job_type AS TEXT))
   AND (CAST(:scope AS TEXT) IS NULL OR scope = CAST(:scope AS TEXT))
   AND (CAST(:label AS TEXT) IS NULL OR label = CAST(:label AS TEXT))
   AND (CAST(:key AS TEXT) IS NULL OR key = CAST(:key AS BLOB))
   AND (CAST(:changed_before AS REAL) IS NULL
        OR changed_at < CAST(:changed_before AS REAL))
   AND (CAST(:changed_after AS REAL) IS NULL
        OR changed_at >= CAST(:changed_after AS REAL))
   AND (CAST(:idle AS REAL) IS NULL
        OR CASE state WHEN 'claimed' THEN lease_until WHEN 'released' THEN changed_at + CAST(:unclaimed AS REAL) END
           < (julianday('now') - 2440587.5) * 86400.0 - CAST(:idle AS REAL))
