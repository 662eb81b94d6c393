-- The guard's tables for SQLite 3.35 and newer, safe to run again. Caller: store.guard_tables.
-- A key is a BLOB whoever writes it: text and bytes never make two rows. Times are seconds since 1970, to the millisecond.

CREATE TABLE IF NOT EXISTS semel_operations (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    scope           TEXT    NOT NULL,
    job_type        TEXT    NOT NULL CHECK (job_type <> ''),
    key             BLOB    NOT NULL CHECK (typeof(key) = 'blob' AND length(key) = 64),
    key_version     INTEGER NOT NULL DEFAULT 0,
    label           TEXT,
    state           TEXT    NOT NULL CHECK (state IN ('claimed', 'released', 'completed', 'held')),
    outcome         TEXT    CHECK (outcome IS NULL OR outcome IN ('acted', 'found', 'missed', 'by_person', 'abandoned')),
    revision        INTEGER NOT NULL DEFAULT 1,
    claim           INTEGER NOT NULL DEFAULT 1,
    token           TEXT,
    claimed_at      REAL    NOT NULL,
    lease_until     REAL    NOT NULL,
    acting_at       REAL,
    unsure_until    REAL,
    reference       TEXT    NOT NULL,
    generation      INTEGER NOT NULL DEFAULT 1,
    reference_at    REAL    NOT NULL,
    fingerprint     TEXT,
    effect          TEXT    NOT NULL,
    claims          INTEGER NOT NULL DEFAULT 1,
    unsure          INTEGER NOT NULL DEFAULT 0,
    takeovers       INTEGER NOT NULL DEFAULT 0,
    looks           INTEGER NOT NULL DEFAULT 0,
    extra_used      INTEGER NOT NULL DEFAULT 0,
    transaction_id  TEXT,
    result          TEXT,
    result_dropped  INTEGER NOT NULL DEFAULT 0,
    last_error      TEXT,
    held_reason     TEXT,
    message         TEXT,
    created_at      REAL    NOT NULL,
    changed_at      REAL    NOT NULL,
    completed_at    REAL,
    CONSTRAINT semel_operations_once UNIQUE (scope, job_type, key),
    CONSTRAINT semel_operations_outcome CHECK ((state = 'completed') = (outcome IS NOT NULL)),
    CONSTRAINT semel_operations_completed_at CHECK ((state = 'completed') = (completed_at IS NOT NULL)),
    CONSTRAINT semel_operations_claimed_has_token CHECK (state <> 'claimed' OR token IS NOT NULL),
    CONSTRAINT semel_operations_released_has_no_token CHECK (state <> 'released' OR token IS NULL)
);
CREATE INDEX IF NOT EXISTS semel_operations_open ON semel_operations (lease_until)
    WHERE state IN ('claimed', 'held', 'released');
CREATE INDEX IF NOT EXISTS semel_operations_completed ON semel_operations (completed_at) WHERE state = 'completed';

-- What happened to operations beside the plain way; outlives the row.
CREATE TABLE IF NOT EXISTS semel_operation_events (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    operation_id  INTEGER NOT NULL,
    scope         TEXT    NOT NULL,
    job_type      TEXT    NOT NULL,
    label         TEXT,
    at            REAL    NOT NULL,
    event         TEXT    NOT NULL,
    claim         INTEGER NOT NULL,
    who           TEXT,
    why           TEXT,
    detail        TEXT
);
CREATE INDEX IF NOT EXISTS semel_operation_events_operation_id ON semel_operation_events (operation_id);
