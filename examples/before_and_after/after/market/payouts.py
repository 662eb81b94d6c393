"""Sellers are paid, each payout once: a record keyed by the payout is claimed first, and completed when the bank has paid.

The books follow the record: whatever a delivery comes to, the payment that it answers is written down.
"""

import functools
import os
from collections.abc import Callable

import psycopg

import semel
from market import bank_client, ledger
from market.app import app
from semel.adapters.celery import guard

once = semel.Once(os.environ["SEMEL_DATABASE_URL"])


def written_down(pay: Callable[..., str]) -> Callable[..., None]:
    """Write down each payment that ``pay`` answers, a repeat's too: so none is missing, and twice is as once."""

    @functools.wraps(pay)
    def pay_and_write_down(payout_id: int, seller: str, amount: int) -> None:
        ledger.note_paid(payout_id, pay(payout_id, seller, amount))

    return pay_and_write_down


@app.task(
    soft_time_limit=30,
    time_limit=40,
    autoretry_for=(semel.errors.DatabaseUnreachable, psycopg.OperationalError),
    retry_backoff=True,
    max_retries=None,
)
@written_down
@guard(
    once.operation(
        "pay-out",
        key="payout_id",
        payload=("seller", "amount"),
        acting="explicit",
        lease="1 min",
        longest_run="20 s",
        effect=semel.Lookup(bank_client.find_payment, settle="30 s"),
    )
)
def pay_out(op: semel.Operation, payout_id: int, seller: str, amount: int) -> str:
    with op.acting():
        payment = bank_client.pay(seller, amount, note=f"payout {payout_id}", reference=op.reference)
    return op.done(payment)
