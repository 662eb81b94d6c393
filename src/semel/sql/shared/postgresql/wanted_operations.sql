-- No statement by itself: which operations a person asks for. list_operations.sql, count_operations.sql and
-- list_adapters.sql have it; states is theirs.
 WHERE state IN ({states})
   AND (CAST(:job_type AS text) IS NULL OR job_type = CAST(:job_type AS text))
   AND (CAST(:scope AS text) IS NULL OR scope = CAST(:scope AS text))
   AND (CAST(:label AS text) IS NULL OR label = CAST(:label AS text))
   AND (CAST(:key AS text) IS NULL OR key = decode(CAST(:key AS text), 'hex'))
   AND (CAST(:changed_before AS double precision) IS NULL
        OR changed_at < to_timestamp(CAST(:changed_before AS double precision)))
   AND (CAST(:changed_after AS double precision) IS NULL
        OR changed_at >= to_timestamp(CAST(:changed_after AS double precision)))
   AND (CAST(:idle AS double precision) IS NULL
        OR CASE state WHEN 'claimed' THEN lease_until WHEN 'released' THEN changed_at + make_interval(secs => CAST(:unclaimed AS double precision)) END
           < clock_timestamp() - make_interval(secs => CAST(:idle AS double precision)))
