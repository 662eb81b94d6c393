-- Lets one migration of this schema run at a time, until its transaction ends. Caller: store.migrate, first of all.
SELECT pg_advisory_xact_lock(hashtextextended('{schema}.migrations', 0))
