-- Schema version 2: the guard. One row per business operation; its unique constraint is the guard.
-- IF NOT EXISTS: an application can have had the guard alone before. See docs/adr/0005-guard.md for the columns.

CREATE TABLE IF NOT EXISTS {schema}.operations (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope           text        NOT NULL DEFAULT '',
    job_type        text        NOT NULL CHECK (job_type <> ''),
    key             bytea       NOT NULL CHECK (octet_length(key) = 32),
    key_version     smallint    NOT NULL DEFAULT 0,
    label           text,
    state           text        NOT NULL CHECK (state IN ('claimed', 'released', 'completed', 'held')),
    outcome         text        CHECK (outcome IN ('acted', 'found', 'missed', 'by_person', 'abandoned')),
    revision        bigint      NOT NULL DEFAULT 1,
    claim           bigint      NOT NULL DEFAULT 1,
    token           text,
    claimed_at      timestamptz NOT NULL,
    lease_until     timestamptz NOT NULL,
    acting_at       timestamptz,
    unsure_until    timestamptz,
    reference       text        NOT NULL,
    generation      integer     NOT NULL DEFAULT 1,
    reference_at    timestamptz NOT NULL,
    fingerprint     text,
    effect          text        NOT NULL,
    claims          integer     NOT NULL DEFAULT 1,
    unsure          integer     NOT NULL DEFAULT 0,
    takeovers       integer     NOT NULL DEFAULT 0,
    looks           integer     NOT NULL DEFAULT 0,
    extra_used      integer     NOT NULL DEFAULT 0,
    transaction_id  text,
    result          jsonb,
    result_dropped  boolean     NOT NULL DEFAULT false,
    last_error      text,
    held_reason     text,
    message         jsonb,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    completed_at    timestamptz,
    CONSTRAINT operations_once UNIQUE (scope, job_type, key),
    CONSTRAINT operations_outcome CHECK ((state = 'completed') = (outcome IS NOT NULL)),
    CONSTRAINT operations_completed_at CHECK ((state = 'completed') = (completed_at IS NOT NULL)),
    CONSTRAINT operations_claimed_has_token CHECK (state <> 'claimed' OR token IS NOT NULL),
    CONSTRAINT operations_released_has_no_token CHECK (state <> 'released' OR token IS NULL)
) WITH (fillfactor = 70);
COMMENT ON TABLE {schema}.operations IS 'One row per business operation: who claimed it, and how it ended.';
CREATE INDEX IF NOT EXISTS operations_open ON {schema}.operations (lease_until) WHERE state IN ('claimed', 'held', 'released');
CREATE INDEX IF NOT EXISTS operations_completed ON {schema}.operations (completed_at) WHERE state = 'completed';
-- By the job of the queue that acts: a worker extends the record together with the job's lease.
CREATE INDEX IF NOT EXISTS operations_job ON {schema}.operations ((CAST(message ->> 'job_id' AS bigint)))
    WHERE state = 'claimed' AND message ->> 'adapter' = 'semel';

-- What happened to operations beside the plain way; outlives the row.
CREATE TABLE IF NOT EXISTS {schema}.operation_events (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    operation_id  bigint      NOT NULL,
    scope         text        NOT NULL,
    job_type      text        NOT NULL,
    label         text,
    at            timestamptz NOT NULL DEFAULT clock_timestamp(),
    event         text        NOT NULL,
    claim         bigint      NOT NULL,
    who           text,
    why           text,
    detail        jsonb
);
CREATE INDEX IF NOT EXISTS operation_events_operation_id ON {schema}.operation_events (operation_id);
