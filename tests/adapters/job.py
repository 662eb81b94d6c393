"""The job that Python workers run in the adapters' tests: the same body, guarded and not, over any queue."""

from __future__ import annotations

import os
from typing import Any

from tests.support import json_server

import semel
from semel.core.effects import Effect

PORT = "SEMEL_TEST_STAGE"
"""The environment variable with the stage's port."""
JOB_TYPE = "charge-order"
LEASE = "SEMEL_TEST_LEASE"
"""The lease in seconds, for tests that wait for its end."""


class Boom(Exception):
    """An exception of the job's own."""


def post(path: str, **told: Any) -> Any:
    """One call to the stage."""
    return json_server.post(int(os.environ[PORT]), path, told, timeout=90)


def reach(name: str, point: str, delivery: str = "") -> None:
    """Say where the job is, and do as it is told there."""
    match post("reach", name=name, point=point, pid=os.getpid(), delivery=delivery)["do"]:
        case "raise":
            raise Boom(f"{name} at {point}")
        case "not_done":
            raise semel.NotDone(f"{name} at {point}")


def charge_unguarded(name: str) -> str:
    """The job as it was: nothing keeps it from running twice."""
    reach(name, "claimed")
    made = post("charge", name=name, reference=name)["id"]
    reach(name, "effect")
    return str(made)


def charge(op: semel.Operation, name: str, amount: int = 100) -> str:
    """The guarded job."""
    reach(name, "claimed")
    with op.acting():
        reach(name, "inside")
        made = post("charge", name=name, reference=op.reference)["id"]
        reach(name, "effect")
    op.done(made)
    reach(name, "completed")
    return str(made)


def find_charge(reference: str, name: str, amount: int = 100) -> Any:
    """The look-up for `Lookup`."""
    found = post("find", reference=reference)["id"]
    return semel.NOT_DONE if found is None else semel.Found(found)


def effects() -> dict[str, Effect]:
    """The effects under which the job is registered, by the last word of its name there: ``charge_hold`` …"""
    return {
        "hold": semel.Hold(),
        "lookup": semel.Lookup(find_charge, settle=0, backoff="0.2 s"),
        "duplicate": semel.AcceptDuplicate(extra=1),
        "miss": semel.AcceptMiss(),
    }


def declare(once: semel.Once, effect: str) -> Any:
    """What guards the job under one effect: give it to the adapter."""
    return once.operation(
        JOB_TYPE,
        key="name",
        payload=("amount",),
        acting="explicit",
        lease=float(os.environ.get(LEASE, "60")),
        longest_run=float(os.environ.get(LEASE, "60")),
        effect=effects()[effect],
    )
