"""An interrupt between any two steps from the claim to the act: the claim is given back, and not left to its lease.

It is released. One that acts from its start is uncertain from the moment at which its function is about to be called.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from semel import Hold, Once
from semel.guard import claiming, delivery, flow, guarded

pytestmark = pytest.mark.usefixtures("stored")

WATCHED = {module.__file__ for module in (flow, delivery, guarded, claiming)}
MOST = 2000
RETURN = dis.opmap["RETURN_VALUE"]


@pytest.fixture(scope="module")
def where(make_database: Any) -> tuple[str, Any]:
    """One database: this is about the flow."""
    return "sqlite", make_database("sqlite")


class Interrupt(BaseException):
    """As a worker's time-out raises it in a thread, at any bytecode."""


class Interrupter:
    """Interrupts the thread at the n-th bytecode of the guard's own after the claim was committed, before the act."""

    def __init__(self, at: int) -> None:
        self.left = at
        self.claimed = False
        self.done = False

    def watch(self, when: str, what: str) -> None:
        if (when, what) == ("committed", "guard_begin_new"):
            self.claimed = True

    def acts(self) -> None:
        """The function begins: from here on an interrupt is an exception of the function's."""
        sys.settrace(None)
        self.done = True

    def trace(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        if frame.f_code.co_filename not in WATCHED:
            return None
        frame.f_trace_opcodes = True
        leaving = frame.f_code.co_code[frame.f_lasti] == RETURN  # there the interpreter looks at no interrupt
        if event == "opcode" and self.claimed and not self.done and not leaving:
            self.left -= 1
            if self.left == 0:
                self.done = True
                sys.settrace(None)
                raise Interrupt(f"{frame.f_code.co_qualname} {frame.f_lineno}")
        return self.trace

    @contextmanager
    def at_work(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self.trace)
        try:
            yield
        finally:
            sys.settrace(before)


def each_step(once: Once, only: Any, stored: Any, deliver: Callable[[Interrupter, int], None]) -> list[str]:
    """Interrupt at the first step, the second, …, until one delivery comes through; answers where nothing was given back."""
    left: list[str] = []
    current = [Interrupter(0)]
    once.place._own.watch = lambda when, what: current[0].watch(when, what)
    for step in range(1, MOST):
        interrupter = current[0] = Interrupter(step)
        try:
            with interrupter.at_work():
                deliver(interrupter, step)
        except Interrupt as interrupt:
            if only()["state"] != "released" and not only()["unsure"]:
                left.append(f"{step}: {interrupt}")
        else:
            assert step > 20
            return left
        stored.ask("DELETE FROM semel_operations")
    raise AssertionError("no delivery came through")


@pytest.mark.parametrize("acting", ["explicit", "from_start"])
def test_a_function(once: Once, only: Any, stored: Any, acting: Any) -> None:
    def deliver(interrupter: Interrupter, number: int) -> None:
        @once.operation("charge", key="order", effect=Hold(), acting=acting)
        def charge(op: Any, order: int) -> None:
            interrupter.acts()
            if acting == "explicit":
                with op.acting():
                    pass

        charge(number)

    assert each_step(once, only, stored, deliver) == []


def test_a_block(once: Once, only: Any, stored: Any) -> None:
    def deliver(interrupter: Interrupter, number: int) -> None:
        with once.claim("charge", number, acting="explicit") as op:
            interrupter.acts()
            with op.acting():
                pass

    assert each_step(once, only, stored, deliver) == []
