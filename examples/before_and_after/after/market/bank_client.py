"""The bank, as the market sees it."""

import json
import os
import urllib.request
from typing import Any
from urllib.parse import urlencode

import semel

PATIENCE = 15.0


def pay(seller: str, amount: int, note: str, reference: str) -> str:
    """Pay a seller; answers the payment's id at the bank."""
    told = {"payee": seller, "amount": amount, "note": note, "reference": reference}
    return str(_ask("/payments", told)["id"])


def find_payment(reference: str, **_: object) -> object:
    """Whether the bank has a payment with this reference."""
    payments = _ask(f"/payments?{urlencode({'reference': reference})}")["payments"]
    return semel.Found(payments[0]["id"]) if payments else semel.NOT_DONE


def _ask(path: str, told: dict[str, Any] | None = None) -> Any:
    body = None if told is None else json.dumps(told).encode()
    request = urllib.request.Request(
        os.environ["BANK_URL"] + path, body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:
        return json.load(response)
