"""What several tests of Celery's do: hold a claim from outside, list what waits for a person."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from tests.adapters import job
from tests.adapters.celery_rig import CeleryRig
from tests.support.waiting import until

import semel
from semel.core.effects import Effect
from semel.core.operation_report import OperationFilter
from semel.core.operations import State
from semel.store.guard_views import list_operations
from semel.store.run import run


class Holder:
    """Somebody who has the claim, in a thread of the test."""

    def __init__(self) -> None:
        self.has_it = threading.Event()
        self.may_end = threading.Event()

    def end(self) -> None:
        """Complete, with the result "by the holder"."""
        self.may_end.set()


@contextmanager
def holding(
    rig: CeleryRig, name: str, *, amount: int = 100, effect: Effect | None = None
) -> Iterator[Holder]:
    """While the block runs (or until `Holder.end`), the operation is claimed, past its point of no return.

    The lease is short and kept, so that others are told to come again soon.
    """
    holder = Holder()
    once = semel.Once(rig.database)

    @once.operation(
        job.JOB_TYPE,
        key="name",
        payload=("amount",),
        acting="explicit",
        lease=3,
        longest_run=120,
        extend=True,
        effect=effect,
    )
    def charge(op: semel.Operation, name: str, amount: int = 100) -> str:
        with op.acting():
            holder.has_it.set()
            holder.may_end.wait(90)
        return str(op.done("by the holder"))

    thread = threading.Thread(target=charge, kwargs={"name": name, "amount": amount})
    thread.start()
    try:
        assert holder.has_it.wait(30)
        yield holder
    finally:
        holder.end()
        thread.join(30)
        once.close()


def stale(rig: CeleryRig) -> set[str]:
    """The labels of claims past their lease."""
    wanted = OperationFilter(states=frozenset({State.CLAIMED}), idle=timedelta(0))
    with rig.session() as session:
        page = run(list_operations(wanted, limit=50, before_id=None), session)
    return {str(each.label) for each in page.operations}


def wait_stale(rig: CeleryRig, name: str) -> None:
    """Wait until its lease is over."""
    until(lambda: name in stale(rig), f"{name} is listed as stale")
