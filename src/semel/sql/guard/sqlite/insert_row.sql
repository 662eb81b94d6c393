-- Claims an operation inside the caller's transaction. Caller: store.guard_begin.begin_row. No row back: there is a record.
-- Locks: the file, for writing. Waits for another writer up to the connection's busy time-out.
INSERT INTO semel_operations
       (scope, job_type, key, key_version, label, state, token, claimed_at, lease_until, acting_at, reference,
        reference_at, fingerprint, effect, transaction_id, message, created_at, changed_at)
VALUES (CAST(:scope AS TEXT), CAST(:job_type AS TEXT), CAST(:key AS BLOB),
        CAST(:key_version AS INTEGER), CAST(:label AS TEXT), 'claimed', CAST(:token AS TEXT), ((julianday('now') - 2440587.5) * 86400.0),
        (julianday('now') - 2440587.5) * 86400.0 + CAST(:lease AS REAL),
        CASE WHEN CAST(:acting AS INTEGER) <> 0 THEN ((julianday('now') - 2440587.5) * 86400.0) END, CAST(:reference AS TEXT), ((julianday('now') - 2440587.5) * 86400.0),
        CAST(:fingerprint AS TEXT), CAST(:effect AS TEXT), CAST(:token AS TEXT), CAST(:message AS TEXT),
        ((julianday('now') - 2440587.5) * 86400.0), ((julianday('now') - 2440587.5) * 86400.0))
ON CONFLICT (scope, job_type, key) DO NOTHING
RETURNING 1
