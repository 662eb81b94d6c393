CAST({column} AS text) COLLATE "C"
