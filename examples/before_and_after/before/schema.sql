-- The market's books.
CREATE TABLE IF NOT EXISTS market_payments (
    id        bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    payout_id bigint      NOT NULL,
    payment   text        NOT NULL,
    paid_at   timestamptz NOT NULL DEFAULT now()
);
