CAST(round(CAST({time} AS numeric) * {factor}) AS bigint)
