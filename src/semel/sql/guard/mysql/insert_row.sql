-- Claims an operation inside the caller's transaction. Caller: store.guard_begin.begin_row, which then reads the token. Locks: the
-- row, new or old; waits for a rival's transaction up to innodb_lock_wait_timeout, which is short here.
INSERT INTO semel_operations
       (scope, job_type, `key`, key_version, label, state, token, claimed_at, lease_until, acting_at, reference,
        reference_at, fingerprint, effect, transaction_id, message, created_at, changed_at)
VALUES (CAST(CONVERT(:scope USING utf8mb4) AS BINARY), CAST(CONVERT(:job_type USING utf8mb4) AS BINARY), UNHEX(CAST(:key AS CHAR)),
        CAST(:key_version AS SIGNED), CAST(:label AS CHAR), 'claimed', CAST(:token AS BINARY), UTC_TIMESTAMP(6),
        UTC_TIMESTAMP(6) + INTERVAL CAST(:lease AS DECIMAL(20, 6)) SECOND,
        CASE WHEN CAST(:acting AS SIGNED) <> 0 THEN UTC_TIMESTAMP(6) END, CAST(:reference AS CHAR), UTC_TIMESTAMP(6),
        CAST(:fingerprint AS BINARY), CAST(:effect AS CHAR), CAST(:token AS BINARY), CAST(:message AS CHAR),
        UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE revision = revision
