"""The job that charges an order: once without the guard, and once with each policy. Run: semel worker shop.jobs:app

They differ in two places: the policy (``effect=``), and what is sent to the provider along with the order.
"""

from __future__ import annotations

from typing import Any

import psycopg

import semel
from semel import Backoff, RetryPolicy, Rule
from shop import gateway
from shop.gateway import CardRefused
from shop.orders import Connection, Order, find_order
from shop.policies import OR_HOLD, PERHAPS_NEVER, PERHAPS_TWICE, SPEED, WITH_KEY, WITH_LOOKUP

LEASE = 60 / SPEED

app = semel.App(lease=LEASE, poll=1 / SPEED, timeout="30 s", max_attempts=8)
once = semel.Once(app)
retry = RetryPolicy(
    max_attempts=8,
    backoff=Backoff(base=2 / SPEED, cap=3600 / SPEED),
    rules=(Rule(CardRefused, "fail"),),  # a card without money on it has none the next minute either
)


@app.job(queue="charges", retry=retry)
def charge_order(order_id: int) -> str:
    """Without the guard. Where the worker dies behind the charge, or the answer is lost, it charges again."""
    order = load(order_id)
    gateway.check_card(order.card)
    return gateway.charge(order)


def charging(job_type: str, effect: Any) -> Any:
    """One order is one operation, whatever its policy. A refused card was certainly not charged."""
    return once.operation(
        job_type, key="order_id", acting="explicit", lease=LEASE, effect=effect, not_done=(CardRefused,)
    )


@app.job(queue="charges", retry=retry, once=charging("charge-order-with-key", WITH_KEY))
def charge_order_with_key(op: semel.Operation, order_id: int) -> str:
    """The same reference over all attempts is the provider's idempotency key: it charges once."""
    order = load(order_id)
    gateway.check_card(order.card)  # a failure here releases the claim: nothing happened
    with op.acting():  # the point of no return
        charge_id = gateway.charge(order, idempotency_key=op.reference)
    return op.done(charge_id)


@app.job(queue="charges", retry=retry, once=charging("charge-order-with-lookup", WITH_LOOKUP))
def charge_order_with_lookup(op: semel.Operation, order_id: int) -> str:
    """The provider is asked for the reference before anybody charges again."""
    order = load(order_id)
    gateway.check_card(order.card)
    with op.acting():
        charge_id = gateway.charge(order, reference=op.reference)
    return op.done(charge_id)


@app.job(queue="charges", retry=retry, once=charging("charge-order-or-hold", OR_HOLD))
def charge_order_or_hold(op: semel.Operation, order_id: int) -> str:
    """What nobody can tell waits for a person, who finds the reference in the provider's list, or does not."""
    order = load(order_id)
    gateway.check_card(order.card)
    with op.acting():
        charge_id = gateway.charge(order, reference=op.reference)
    return op.done(charge_id)


@app.job(queue="charges", retry=retry, once=charging("charge-order-perhaps-twice", PERHAPS_TWICE))
def charge_order_perhaps_twice(op: semel.Operation, order_id: int) -> str:
    """It charges again, once at most; then it is held."""
    order = load(order_id)
    gateway.check_card(order.card)
    with op.acting():
        charge_id = gateway.charge(order)
    return op.done(charge_id)


@app.job(queue="charges", retry=retry, once=charging("charge-order-perhaps-never", PERHAPS_NEVER))
def charge_order_perhaps_never(op: semel.Operation, order_id: int) -> str:
    """It never charges again, and is completed as missed."""
    order = load(order_id)
    gateway.check_card(order.card)
    with op.acting():
        charge_id = gateway.charge(order)
    return op.done(charge_id)


def load(order_id: int) -> Order:
    with connect() as connection:
        return find_order(connection, order_id)


def connect() -> Connection:
    """A connection to the application's database, which is also the jobs' and the guard's."""
    return psycopg.connect(app.url)
