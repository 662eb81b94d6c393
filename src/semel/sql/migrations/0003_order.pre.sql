-- Schema version 3: order per key.
-- Finds the first live job of each key of a queue, and those behind it. It names no column that a claim writes, and jobs
-- without a key are not in it, so that they pay nothing. COLLATE "C": the order of keys means nothing, it has to be one
-- that a client can compute too.

CREATE INDEX jobs_order ON {schema}.jobs (queue, ordering_key COLLATE "C", id) WHERE live AND ordering_key IS NOT NULL;
