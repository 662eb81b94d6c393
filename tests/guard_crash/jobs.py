"""Jobs that are guarded operations, as a worker under test runs them. Each can kill its worker once at one point."""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path
from typing import Any

from tests.guard_crash.actors import watch_all
from tests.guard_crash.recorder import post
from tests.support.deaths import RECORD, make_watch

import semel
from semel import App, JobContext, Once

TARGET, RECEIVER, KILL = "SEMEL_TEST_TARGET", "SEMEL_TEST_RECEIVER", "SEMEL_TEST_KILL"
app = App("postgresql://nowhere", poll=0.1, lease=1, stop_grace=10)
once = Once(os.environ.get(TARGET, "postgresql://nowhere"))
if RECORD in os.environ:  # in a worker under test: its guard's statements are points to die at, too
    watch_all(once, make_watch("child"))


def reach(point: str, name: str) -> None:
    """Kill this process where the message says so, the first time only. Never a process that a test runs in."""
    wanted, _, marks = os.environ.get(KILL, "").partition(":")
    if wanted != point or not marks:
        return
    mark = Path(marks) / f"{name}.killed"
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def outside(effect: Any) -> Any:
    return once.operation(
        "charge", key="name", payload=("amount",), effect=effect, acting="explicit", lease="1 s"
    )


def charge(op: semel.Operation, name: str) -> str:
    reach("claimed", name)
    with op.acting():
        reach("inside", name)
        told = {"name": name, "reference": op.reference, "honours": True}
        answer = post(int(os.environ[RECEIVER]), "charge", **told)
        reach("effect", name)
    op.done(answer["id"])
    reach("returned", name)
    return str(answer["id"])


@app.job(kind="charge-by-key", once=outside(semel.ProviderKey(valid_for="1 h")))
def charge_by_key(op: semel.Operation, name: str, amount: int = 1) -> str:
    return charge(op, name)


@app.job(kind="charge-or-hold", once=outside(semel.Hold()))
def charge_or_hold(op: semel.Operation, name: str, amount: int = 1) -> str:
    return charge(op, name)


@app.job(kind="charge-without-a-breath", once=outside(semel.AcceptDuplicate()))
def charge_without_a_breath(op: semel.Operation, name: str, amount: int = 1) -> str:
    with op.acting():
        answer = post(int(os.environ[RECEIVER]), "charge", name=name, reference=op.reference)
        ctypes.PyDLL(None).usleep(4_000_000)  # a C call that keeps the interpreter's lock, for four leases
    return op.done(str(answer["id"]))


@app.job(
    kind="add-row",
    context=True,
    once=once.operation("add-row", key="name", effect=semel.Row()),
)
def add_row(op: semel.Operation, ctx: JobContext, name: str) -> str:
    reach("claimed", name)
    op.connection.execute("INSERT INTO effects (name) VALUES (%s)", (name,))
    reach("effect", name)
    return f"row-{name}"
