CAST(ROUND({time} * {factor}) AS SIGNED)
