"""Lets through what may repeat: two passes over deliveries that are kept in a file of their own, in fixed memory.

Most references come once, and grouping is what costs. So each reference is first noted in a table of small counters, by
its hash; in the second pass only those come out whose counter says more than once. Some came there by another one with the
same hash: who groups them finds out. None that repeats stays behind.
"""

from __future__ import annotations

import marshal
import struct
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

from semel.core.past import AFTER_ALL_MS, BEFORE_ALL_MS
from semel.store.past.finding import MINUTE_MS, MOST_BUCKETS

_SIZE: Final = struct.Struct("<Q")
_SLOTS: Final = 1 << 26
"""Of one byte each. With 5 million references, one in thirteen comes out that does not repeat."""


@dataclass(frozen=True, slots=True)
class Deliveries:
    """Some deliveries by columns: the reference's parts (text, or bytes where it is none), and the times in ms."""

    references: tuple[list[Any], ...]
    times_ms: list[int]


class Sieve:
    """Add all deliveries, then take out those that may repeat."""

    def __init__(self) -> None:
        self._slots = bytearray(_SLOTS)
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._activity: Counter[int] = Counter()
        self.step_ms = MINUTE_MS
        self.count = 0
        self.first_ms, self.last_ms = AFTER_ALL_MS, BEFORE_ALL_MS

    def __enter__(self) -> Sieve:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    @property
    def activity(self) -> list[tuple[int, int]]:
        """Deliveries by the step in which they came: its start in ms, and how many."""
        return [(start * self.step_ms, count) for start, count in sorted(self._activity.items())]

    def add(self, some: Deliveries) -> None:
        """Note the references, and put the deliveries away."""
        slots, last = self._slots, _SLOTS - 1
        for slot in [hash(key) & last for key in _keys(some)]:
            slots[slot] = 2 if slots[slot] else 1
        stored = marshal.dumps((some.references, some.times_ms))
        self._file.write(_SIZE.pack(len(stored)) + stored)
        step = self.step_ms
        self._activity.update([moment // step for moment in some.times_ms])
        while len(self._activity) > MOST_BUCKETS:
            self._coarsen()
        self.count += len(some.times_ms)
        self.first_ms = min(self.first_ms, *some.times_ms)
        self.last_ms = max(self.last_ms, *some.times_ms)

    def take_out(self) -> Iterator[tuple[Any, ...]]:
        """Rows of the reference's parts and the time, of what may repeat."""
        slots, last = self._slots, _SLOTS - 1
        self._file.seek(0)
        while head := self._file.read(_SIZE.size):
            some = Deliveries(*marshal.loads(self._file.read(*_SIZE.unpack(head))))  # noqa: S302  # own file
            for key, row in zip(_keys(some), zip(*some.references, some.times_ms, strict=True), strict=True):
                if slots[hash(key) & last] == 2:
                    yield row

    def _coarsen(self) -> None:
        """Ten steps become one: there are too many of them."""
        coarser: Counter[int] = Counter()
        for start, count in self._activity.items():
            coarser[start // 10] += count
        self._activity, self.step_ms = coarser, self.step_ms * 10


def _keys(some: Deliveries) -> Any:
    return some.references[0] if len(some.references) == 1 else zip(*some.references, strict=True)
