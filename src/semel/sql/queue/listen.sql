-- Hears, on this connection, who has stored a job for one that sleeps. Caller: store.sleep. Not behind a pooler.
LISTEN semel_jobs
