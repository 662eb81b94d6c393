"""The job as it should be guarded, in each policy: POLICY and ACTING say which."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import Any

import provider

import semel

POLICY = os.environ.get("POLICY", "hold")
ACTING: Any = os.environ.get("ACTING", "explicit")
TARGET = os.environ["TARGET"]
EFFECTS = {
    "hold": semel.Hold(),
    "lookup": semel.Lookup(
        lambda reference, order_id, **_: semel.DONE if provider.is_known(order_id) else semel.NOT_DONE,
        settle="50 ms",
    ),
    "provider_key": semel.ProviderKey(valid_for="1 h"),
    "accept_duplicate": semel.AcceptDuplicate(),
    "accept_miss": semel.AcceptMiss(),
}

once = semel.Once(TARGET)
declared = once.operation(
    "charge", key="order_id", payload=("amount",), effect=EFFECTS[POLICY], acting=ACTING, lease="30 s"
)


@declared
def charge(op: semel.Operation, order_id: int, customer: int = 1, amount: int = 100) -> str:
    with op.acting() if ACTING == "explicit" else nullcontext():
        provider.charge(order_id, op.reference if POLICY == "provider_key" else None)
    return "charged"


@declared
async def charge_async(op: semel.AsyncOperation, order_id: int, customer: int = 1, amount: int = 100) -> str:
    if ACTING == "explicit":
        async with op.acting():
            await provider.charge_async(order_id, op.reference if POLICY == "provider_key" else None)
    else:
        await provider.charge_async(order_id, op.reference if POLICY == "provider_key" else None)
    return "charged"


@once.operation("insert", key="order_id", payload=("amount",), effect=semel.Row(), lease="30 s")
def insert(op: semel.Operation, order_id: int, customer: int = 1, amount: int = 100) -> None:
    provider.insert(op.connection, order_id)
