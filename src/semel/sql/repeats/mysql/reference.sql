CAST({column} AS BINARY)
