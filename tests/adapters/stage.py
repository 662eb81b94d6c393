"""The outside system of the adapters' tests, over HTTP on loopback: workers in any language speak to it.

It counts effects where they arrive, and can hold a worker at a point of its job until the test lets it go on or kills it.
All bodies are JSON, all calls POST:

``/reach {"name", "point", "pid", "delivery"}``  the job says where it is; the answer ``{"do": …}`` tells it to ``go`` on, to
    ``raise`` an error of its own, or to raise the guard's ``not_done``. The answer may be held back.
``/charge {"name", "reference"}``  the effect; answers ``{"id": …}``.
``/find {"reference"}``  the look-up; answers ``{"id": … or null}``.

The points of a guarded job: ``claimed`` (nothing can have happened), ``inside`` (past the point of no return), ``effect``
(it happened, and is not completed), ``completed`` (after op.done). An unguarded job has ``claimed`` and ``effect``.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.json_server import serve

POINTS = ("claimed", "inside", "effect", "completed")
PATIENCE = 60.0


@dataclass(frozen=True)
class Reached:
    """One arrival of a worker at a point."""

    name: str
    point: str
    pid: int
    delivery: str
    at: float


@dataclass
class _Gate:
    """What happens to who arrives at a point: held back until it is opened, then told what to do."""

    do: str
    held: bool
    turns: int | None
    opened: threading.Event = field(default_factory=threading.Event)


class Stage:
    """What arrived, and what is to happen to who arrives."""

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self._changed = threading.Condition()
        self._gates: dict[tuple[str, str], _Gate] = {}
        self._by_reference: dict[str, str] = {}
        self.effects: Counter[str] = Counter()
        """Effects by the job's name."""
        self.references: dict[str, list[str]] = defaultdict(list)
        self.arrivals: list[Reached] = []
        self.together: dict[str, int] = defaultdict(int)

    # what a test says

    def hold(self, name: str, point: str, *, do: str = "go", turns: int | None = 1) -> None:
        """Hold the next arrivals (``turns``; None: every one) of a job at a point until `release`."""
        with self._changed:
            self._gates[name, point] = _Gate(do, held=True, turns=turns)

    def answer(self, name: str, point: str, do: str, *, turns: int | None = 1) -> None:
        """Tell the next arrivals at a point to ``raise`` or ``not_done``, without holding them."""
        with self._changed:
            self._gates[name, point] = _Gate(do, held=False, turns=turns)

    def meet(self, name: str, parties: int) -> None:
        """Let the first ``parties`` arrivals at ``claimed`` wait for one another: so they truly overlap."""
        with self._changed:
            self.together[name] = parties

    def release(self, name: str, point: str) -> None:
        """Let go on who is held there, and hold nobody there any more."""
        with self._changed:
            gate = self._gates.pop((name, point), None)
        if gate is not None:
            gate.opened.set()

    def arrived(self, name: str, point: str | None = None) -> list[Reached]:
        """The arrivals so far, in order."""
        with self._changed:
            return [each for each in self.arrivals if each.name == name and point in (None, each.point)]

    def wait_for(self, name: str, point: str, count: int = 1, *, patience: float = PATIENCE) -> Reached:
        """Wait until the job has been at a point ``count`` times; the last of these arrivals."""
        self.wait_until(
            lambda: len(self.arrived(name, point)) >= count, f"{name} at {point} x{count}", patience
        )
        return self.arrived(name, point)[count - 1]

    def wait_until(self, true: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
        """Wait for something about what arrived."""
        end = time.monotonic() + patience
        with self._changed:
            while not true():
                left = end - time.monotonic()
                if left <= 0:
                    shown = [f"{each.name}@{each.point}" for each in self.arrivals[-20:]]
                    raise AssertionError(f"not seen in {patience:g} s: {what}; last arrivals: {shown}")
                self._changed.wait(left)

    # what workers say

    def reach(self, told: dict[str, Any]) -> dict[str, Any]:
        name, point = told["name"], told["point"]
        reached = Reached(name, point, int(told["pid"]), str(told.get("delivery", "")), time.monotonic())
        with self._changed:
            self.arrivals.append(reached)
            self._changed.notify_all()
            gate = self._gates.get((name, point))
            if gate is not None and gate.turns is not None:
                gate.turns -= 1
                if gate.turns <= 0 and not gate.held:
                    del self._gates[name, point]
                if gate.turns < 0:
                    gate = None
            if point == "claimed" and name in self.together:
                self._wait_together(name)
        if gate is None:
            return {"do": "go"}
        if gate.held:
            gate.opened.wait(PATIENCE)
        return {"do": gate.do}

    def _wait_together(self, name: str) -> None:
        end = time.monotonic() + PATIENCE
        parties = self.together[name]

        def here() -> int:
            return sum(each.name == name and each.point == "claimed" for each in self.arrivals)

        while here() < parties and time.monotonic() < end:
            self._changed.wait(end - time.monotonic())

    def charge(self, told: dict[str, Any]) -> dict[str, Any]:
        with self._changed:
            name, reference = told["name"], told["reference"]
            self.references[name].append(reference)
            self.effects[name] += 1
            made = f"charge-{name}-{self.effects[name]}"
            self._by_reference[reference] = made
            self._changed.notify_all()
        return {"id": made}

    def find(self, told: dict[str, Any]) -> dict[str, Any]:
        with self._changed:
            return {"id": self._by_reference.get(told["reference"])}


@contextmanager
def run_stage() -> Iterator[Stage]:
    """A stage, served; its ``port`` is what workers are told."""
    stage = Stage()
    with serve({"reach": stage.reach, "charge": stage.charge, "find": stage.find}) as stage.port:
        try:
            yield stage
        finally:
            for name, point in list(stage._gates):
                stage.release(name, point)
