-- The market's books.
CREATE TABLE IF NOT EXISTS market_payments (
    id        bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    payout_id bigint      NOT NULL,
    payment   text        NOT NULL,
    paid_at   timestamptz NOT NULL DEFAULT now()
);

-- A payment is written down once, however often. The old code wrote each one once, too: it can come before the new code does.
CREATE UNIQUE INDEX IF NOT EXISTS market_payments_payment ON market_payments (payment);
