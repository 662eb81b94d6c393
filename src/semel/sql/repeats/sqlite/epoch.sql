CAST(round({time} * {factor}) AS INTEGER)
