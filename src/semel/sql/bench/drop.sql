-- Removes a benchmark's schema with everything in it. Caller: store.bench.
DROP SCHEMA IF EXISTS {schema} CASCADE
