"""Sellers are paid, each payout once: a record keyed by the payout is claimed first, and completed when the bank has paid."""

import os

import semel
from market import bank_client, ledger
from market.app import app
from semel.adapters.celery import guard

once = semel.Once(os.environ["SEMEL_DATABASE_URL"])


@app.task
@guard(
    once.operation(
        "pay-out",
        key="payout_id",
        payload=("seller", "amount"),
        acting="explicit",
        lease="1 min",
        effect=semel.Lookup(bank_client.find_payment, settle="30 s"),
    )
)
def pay_out(op: semel.Operation, payout_id: int, seller: str, amount: int) -> None:
    with op.acting():
        payment = bank_client.pay(seller, amount, note=f"payout {payout_id}", reference=op.reference)
    op.done(payment)
    ledger.note_paid(payout_id, payment)
