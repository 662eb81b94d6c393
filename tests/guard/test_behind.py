"""The guarded functions that an object of the user's leads to."""

from __future__ import annotations

import functools
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import semel
from semel.adapters.sqs import Consumer, Inbox, lambda_handler
from semel.guard.behind import guarded_behind
from semel.guard.guarded import Guarded
from semel.replay.inside.guard import find_guarded


def declare(place: Path, name: str) -> Guarded[..., object]:
    @semel.Once(str(place / "operations.db")).operation(name, key="order_id")
    def charge(op: semel.Operation, order_id: int) -> None: ...

    return charge


class Hostile:
    """Another library's object: its attributes cannot be read out of context, or go on for ever."""

    @property
    def run(self) -> None:
        raise RuntimeError("working outside of context")

    @property
    def function(self) -> Hostile:
        return Hostile()


def test_the_one_behind_whatever_calls_it(tmp_path: Path) -> None:
    charge = declare(tmp_path, "charge")

    @functools.wraps(charge)
    def wrapped(order_id: int) -> None:
        charge(order_id)

    callers = (
        charge,
        wrapped,
        functools.partial(charge, 7),
        functools.partial(wrapped, 7),
        SimpleNamespace(run=wrapped),
        Consumer("orders", charge),
        Inbox("orders").handler(charge),
        lambda_handler(charge),
    )
    for found in callers:
        assert guarded_behind(found) == (charge,)
        assert find_guarded(found, "shop:charge") is charge


def test_several_behind_what_tells_messages_apart(tmp_path: Path) -> None:
    charge, refund = declare(tmp_path, "charge"), declare(tmp_path, "refund")
    both = {"charge": charge, "refund": refund, "print": print}
    for found in (Consumer("orders", both, kind="type"), lambda_handler(both, kind="type")):
        assert guarded_behind(found) == (charge, refund)
        with pytest.raises(LookupError, match="2 operations: charge, refund"):
            find_guarded(found, "shop:consumer")


def test_nothing_behind_what_nothing_guards(tmp_path: Path) -> None:
    module = ModuleType("shop")
    module.handler = declare(tmp_path, "charge")  # type: ignore[attr-defined]
    for found in (print, 7, Hostile(), module, Consumer("orders", print), semel.Once(str(tmp_path / "a.db"))):
        assert guarded_behind(found) == ()
        with pytest.raises(LookupError, match="not guarded"):
            find_guarded(found, "shop:found")
