"""Sellers are paid, each payout once: it asks the books first, pays, and writes it down."""

from market import bank_client, ledger
from market.app import app


@app.task
def pay_out(payout_id: int, seller: str, amount: int) -> None:
    if ledger.is_paid(payout_id):
        return
    payment = bank_client.pay(seller, amount, note=f"payout {payout_id}")
    ledger.note_paid(payout_id, payment)
