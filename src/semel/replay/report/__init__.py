"""A run as people and machines read it: a table in the terminal, JUnit XML, JSON, one HTML page. All from `Run` alone."""
