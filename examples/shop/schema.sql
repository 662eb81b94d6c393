CREATE TABLE IF NOT EXISTS orders (
    id      bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    card    text     NOT NULL,
    amount  integer  NOT NULL CHECK (amount > 0)  -- in cents
);
