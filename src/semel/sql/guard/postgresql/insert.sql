-- Claims an operation that has no record, committed by itself. Caller: store.guard_begin.begin_new. No row back: there is one.
-- Locks: its own row; waits for a rival that inserts the same key, half a second at most (set
-- in the statement: a setting of the session would leak through a pooler).
INSERT INTO {schema}.operations
       (scope, job_type, key, key_version, label, state, token, claimed_at, lease_until, acting_at, reference,
        reference_at, fingerprint, effect, message)
SELECT CAST(:scope AS text), CAST(:job_type AS text), decode(CAST(:key AS text), 'hex'), CAST(:key_version AS smallint),
        CAST(:label AS text), 'claimed', CAST(:token AS text), clock_timestamp(),
        clock_timestamp() + make_interval(secs => CAST(:lease AS double precision)),
        CASE WHEN CAST(:acting AS boolean) THEN clock_timestamp() END, CAST(:reference AS text), clock_timestamp(),
        CAST(:fingerprint AS text), CAST(:effect AS text), CAST(CAST(:message AS text) AS jsonb)
  FROM (SELECT set_config('lock_timeout', '500ms', true)) AS patience
ON CONFLICT (scope, job_type, key) DO NOTHING
RETURNING 1
