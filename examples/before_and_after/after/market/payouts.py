"""Sellers are paid, each payout once: a record keyed by the payout is claimed first, and completed when the bank has paid."""

import os

import semel
from market import bank_client, ledger
from market.app import app
from semel.adapters.celery import guard

once = semel.Once(os.environ["SEMEL_DATABASE_URL"])


@app.task(
    soft_time_limit=30,
    time_limit=40,
    autoretry_for=(semel.errors.DatabaseUnreachable,),
    retry_backoff=True,
    max_retries=None,
)
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
def pay_out(op: semel.Operation, payout_id: int, seller: str, amount: int) -> None:
    with op.acting():
        payment = bank_client.pay(seller, amount, note=f"payout {payout_id}", reference=op.reference)
    op.done(payment)
    ledger.note_paid(payout_id, payment)
