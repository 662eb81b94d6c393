CASE WHEN isfinite(CAST({time} AS timestamptz))
        THEN CAST(round(extract(epoch FROM CAST({time} AS timestamptz)) * 1000) AS bigint) END
