"""What a type checker sees of functions guarded for Celery. Each ignored error must be one."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_type

from semel import Once, Operation
from semel.adapters.celery import GuardedTask, guard

once = Once("postgresql://x/y")


@guard(once.operation("charge", key="order"))
def charge(op: Operation, order: int, amount: int = 1) -> str:
    return ""


@guard(once.operation("charge", key="order"))
def charge_bound(self: GuardedTask, op: Operation, order: int) -> str:
    return ""


@guard(once.operation("charge", key="order", with_operation=False))
def charge_plain(order: int) -> str:
    return ""


@guard("charge")  # type: ignore[arg-type]
def wrong(op: Operation, order: int) -> None: ...


def calls(task: GuardedTask) -> None:
    assert_type(charge(1), str)
    assert_type(charge(1, amount=2), str)
    assert_type(charge_bound(task, 1), str)
    assert_type(charge_plain(1), str)
    charge("1")  # type: ignore[arg-type]
    charge_bound(task, "1")  # type: ignore[arg-type]
    plain: Callable[[int], str] = charge
    plain(1)
