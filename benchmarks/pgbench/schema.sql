-- A queue as a textbook has it: one table, an index over what is pending.
CREATE TABLE jobs (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind          text        NOT NULL,
    payload       jsonb       NOT NULL,
    status        text        NOT NULL DEFAULT 'pending',
    attempts      int         NOT NULL DEFAULT 0,
    max_attempts  int         NOT NULL DEFAULT 20,
    run_at        timestamptz NOT NULL DEFAULT now(),
    locked_until  timestamptz,
    last_error    text,
    unique_key    text,
    created_at    timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX jobs_due ON jobs (run_at) WHERE status = 'pending';
