-- Claims an operation inside the caller's transaction; waits for nobody. Caller: store.guard_begin.begin_row. No row back: there
-- is a record, or a rival's transaction holds the key (busy), or the isolation asks for a savepoint first.
-- The transaction-level advisory lock is only a try-lock: the unique constraint is the guard. A collision of hashes says busy.
INSERT INTO {schema}.operations
       (scope, job_type, key, key_version, label, state, token, claimed_at, lease_until, acting_at, reference,
        reference_at, fingerprint, effect, transaction_id, message)
SELECT CAST(:scope AS text), CAST(:job_type AS text), decode(CAST(:key AS text), 'hex'), CAST(:key_version AS smallint),
       CAST(:label AS text), 'claimed', CAST(:token AS text), clock_timestamp(),
       clock_timestamp() + make_interval(secs => CAST(:lease AS double precision)),
       CASE WHEN CAST(:acting AS boolean) THEN clock_timestamp() END, CAST(:reference AS text), clock_timestamp(),
       CAST(:fingerprint AS text), CAST(:effect AS text), CAST(pg_current_xact_id() AS text),
       CAST(CAST(:message AS text) AS jsonb)
 WHERE CASE WHEN current_setting('transaction_isolation') <> 'read committed' AND NOT CAST(:in_savepoint AS boolean)
                 THEN false
            WHEN EXISTS (SELECT 1 FROM {schema}.operations WHERE scope = CAST(:scope AS text) AND job_type = CAST(:job_type AS text) AND key = decode(CAST(:key AS text), 'hex'))
                 THEN false
            ELSE pg_try_advisory_xact_lock(hashtextextended(
                     CAST(:scope AS text) || ' ' || CAST(:job_type AS text) || ' ' || CAST(:key AS text), 0)) END
ON CONFLICT (scope, job_type, key) DO NOTHING
RETURNING 1
