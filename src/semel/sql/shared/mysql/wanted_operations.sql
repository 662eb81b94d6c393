-- No statement by itself: which operations a person asks for. list_operations.sql, count_operations.sql and
-- list_adapters.sql have it; states is theirs.
 WHERE state IN ({states})
   AND (CAST(:job_type AS CHAR) IS NULL OR job_type = CAST(CONVERT(:job_type USING utf8mb4) AS BINARY))
   AND (CAST(:scope AS CHAR) IS NULL OR scope = CAST(CONVERT(:scope USING utf8mb4) AS BINARY))
   AND (CAST(:label AS CHAR) IS NULL OR label = CAST(:label AS CHAR))
   AND (CAST(:key AS CHAR) IS NULL OR `key` = UNHEX(CAST(:key AS CHAR)))
   AND (CAST(:changed_before AS DECIMAL(20, 6)) IS NULL
        OR changed_at < TIMESTAMP('1970-01-01') + INTERVAL CAST(:changed_before AS DECIMAL(20, 6)) SECOND)
   AND (CAST(:changed_after AS DECIMAL(20, 6)) IS NULL
        OR changed_at >= TIMESTAMP('1970-01-01') + INTERVAL CAST(:changed_after AS DECIMAL(20, 6)) SECOND)
   AND (CAST(:idle AS DECIMAL(20, 6)) IS NULL
        OR CASE state WHEN 'claimed' THEN lease_until WHEN 'released' THEN changed_at + INTERVAL CAST(:unclaimed AS DECIMAL(20, 6)) SECOND END
           < UTC_TIMESTAMP(6) - INTERVAL CAST(:idle AS DECIMAL(20, 6)) SECOND)
