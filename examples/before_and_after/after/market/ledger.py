"""The market's own books: which payouts were paid."""

import os

import psycopg


def connect() -> psycopg.Connection:
    return psycopg.connect(os.environ["SEMEL_DATABASE_URL"])


def is_paid(payout_id: int) -> bool:
    with connect() as connection:
        found = connection.execute("SELECT 1 FROM market_payments WHERE payout_id = %s", (payout_id,))
        return found.fetchone() is not None


def note_paid(payout_id: int, payment: str) -> None:
    with connect() as connection:
        connection.execute(
            "INSERT INTO market_payments (payout_id, payment) VALUES (%s, %s)", (payout_id, payment)
        )
