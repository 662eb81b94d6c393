"""The job on semel's own queue."""

from __future__ import annotations

import os

import provider

import semel

AGAIN_SOON = semel.RetryPolicy(backoff=semel.Backoff(base=0.2, factor=1))
app = semel.App(os.environ["SEMEL_DATABASE_URL"], poll=0.1, lease=2)
once = semel.Once(app)


@app.job(
    kind="charge",
    retry=AGAIN_SOON,
    once=once.operation(
        "charge",
        key="order_id",
        payload=("amount",),
        effect=semel.Hold(),
        acting="explicit",
        lease="30 s",
        longest_run="10 s",
    ),
)
def charge(op: semel.Operation, order_id: int, amount: int = 100) -> str:
    with op.acting():
        provider.charge(order_id)
    return "charged"


@app.job(kind="plain", retry=AGAIN_SOON)
def plain(order_id: int) -> None:
    provider.charge(order_id)
