"""How many effects an operation had, counted where they arrive."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from semel.replay.control import ControlRoom
from semel.replay.description import Description, Message
from semel.replay.events import Point


class Counter(Protocol):
    """Counts one operation's effects."""

    def count(self, number: int, message: Message) -> int: ...


@dataclass(frozen=True)
class _Calls:
    room: ControlRoom
    distinct: bool

    def count(self, number: int, message: Message) -> int:
        returned = self.room.events(number, Point.RETURN)
        return len({each.digest for each in returned}) if self.distinct else len(returned)


@contextmanager
def open_counter(description: Description, room: ControlRoom, *, distinct: bool) -> Iterator[Counter]:
    yield _Calls(room, distinct)
