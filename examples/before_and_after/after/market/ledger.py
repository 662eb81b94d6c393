"""The market's own books: the payments, each once."""

import os

import psycopg


def connect() -> psycopg.Connection:
    return psycopg.connect(os.environ["SEMEL_DATABASE_URL"])


def note_paid(payout_id: int, payment: str) -> None:
    """Write a payment down, by the bank's id for it; one that is there already stays as it is."""
    with connect() as connection:
        connection.execute(
            "INSERT INTO market_payments (payout_id, payment) VALUES (%s, %s) ON CONFLICT (payment) DO NOTHING",
            (payout_id, payment),
        )
