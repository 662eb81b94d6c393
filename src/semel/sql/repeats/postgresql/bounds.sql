
    WHERE {time} IS NULL
        OR (CAST({time} AS timestamptz) >= to_timestamp(:since / 1000.0)
            AND CAST({time} AS timestamptz) < to_timestamp(:until / 1000.0))
