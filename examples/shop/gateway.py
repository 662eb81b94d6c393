"""The payment provider as the shop sees it: three calls over HTTP, each of which may end without an answer."""

from __future__ import annotations

import http.client
import json
import os
from typing import Any
from urllib.parse import quote, urlencode

import semel
from shop.orders import Order

# More than the provider ever takes: after this long without an answer nobody knows what it did.
PATIENCE = 20.0


class CardRefused(Exception):
    """The provider says no: nothing was charged, and trying again changes nothing."""


class NoAnswer(Exception):
    """The provider may have done it, or not."""


def check_card(card: str) -> None:
    """Whether the card can be charged. Charges nothing."""
    _ask("GET", f"/cards/{quote(card)}")


def charge(order: Order, *, reference: str = "", idempotency_key: str | None = None) -> str:
    """Charge the order's card; answers the charge's id. The provider charges once for one idempotency key."""
    body = {"order": order.id, "card": order.card, "amount": order.amount, "reference": reference}
    headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
    answer = _ask("POST", "/charges", body, headers)
    return str(answer["id"])


def find_charge(reference: str, order_id: int) -> object:
    """Whether a charge with this reference is there: a look-up, as the guard wants it."""
    charges = _ask("GET", f"/charges?{urlencode({'reference': reference})}")["charges"]
    return semel.Found(charges[0]["id"]) if charges else semel.NOT_DONE


def _ask(method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
    address = os.environ.get("SHOP_PROVIDER", "127.0.0.1:8090")
    connection = http.client.HTTPConnection(address, timeout=PATIENCE)
    try:
        sent = None if body is None else json.dumps(body)
        connection.request(method, path, sent, {"Content-Type": "application/json", **(headers or {})})
        response = connection.getresponse()
        answer = json.loads(response.read())
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswer(f"{method} {path.partition('?')[0]}: {error!r}") from error
    finally:
        connection.close()
    if response.status == 402:
        raise CardRefused(answer["error"])
    if response.status not in (200, 201):
        raise NoAnswer(f"{method} {path.partition('?')[0]}: {response.status} {answer['error']}")
    return answer
