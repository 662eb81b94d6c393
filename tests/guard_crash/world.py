"""One database with the guard's tables and a table for effects, beside the outside system."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from tests.guard.stored import Ago, Stored
from tests.guard_crash.actors import Delivery
from tests.guard_crash.recorder import Recorder

import semel
from semel.core.keys import compute_key

AT_ONCE = 12
Value = TypeVar("Value")
numbers = itertools.count(1)


@dataclass
class World:
    """What a test of crashes has at hand."""

    dialect: str
    target: str
    """As people give it to ``Once``."""
    where: Any
    recorder: Recorder
    port: int
    once: semel.Once

    def delivery(self, effect: str, name: str | None = None, **more: Any) -> Delivery:
        """A delivery of an operation of its own."""
        called = f"{effect}-{next(numbers)}" if name is None else name
        return Delivery(target=self.target, receiver=self.port, effect=effect, name=called, **more)

    @contextmanager
    def stored(self) -> Iterator[Stored]:
        looked = Stored.at(self.dialect, self.where)
        try:
            yield looked
        finally:
            looked.close()

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        with self.stored() as stored:
            return stored.ask(text)

    def effects(self, delivery: Delivery) -> int:
        """Effects, counted where they arrive: committed rows, or charges at the receiver."""
        if delivery.effect == "row":
            return int(self.ask(f"SELECT count(*) FROM effects WHERE name = '{delivery.name}'")[0][0])
        return self.recorder.charges[delivery.name]

    def record(self, delivery: Delivery) -> dict[str, Any]:
        with self.stored() as stored:
            record = stored.record(compute_key(delivery.name).digest)
        assert record is not None, delivery
        return record

    def state(self, delivery: Delivery) -> str:
        """``completed acted``, ``held`` …"""
        record = self.record(delivery)
        return " ".join(word for word in (record["state"], record["outcome"]) if word)

    def age(self, delivery: Delivery, seconds: float = 0.01) -> None:
        """Let the claim's lease have ended so long ago, by the database's clock."""
        with self.stored() as stored:
            stored.change(compute_key(delivery.name).digest, lease_until=Ago(seconds))

    def at_once(self, function: Callable[[Any], Value], cases: Iterable[Any]) -> list[Value]:
        """Call it with each case, several at a time; SQLite's writers wait for one another."""
        with ThreadPoolExecutor(4 if self.dialect == "sqlite" else AT_ONCE) as threads:
            return list(threads.map(function, cases))

    def events(self, delivery: Delivery) -> list[str]:
        with self.stored() as stored:
            return [row[0] for row in stored.events(compute_key(delivery.name).digest)]
