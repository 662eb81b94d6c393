"""What is wrong with lines of a file: counted by kind, shown by the first numbers; never fatal, never dropped in silence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

SHOWN: Final = 10
"""So many lines of each kind are named."""

REFUSED: Final = MappingProxyType(
    {
        "no-reference": "have no reference",
        "no-time": "have no time",
        "time-unreadable": "have a time that cannot be read",
        "no-scalar": "have an object or a list as reference or time",
        "fields": "have another number of fields than the header",
        "not-json": "are no JSON object",
        "no-match": "do not match the pattern",
        "too-long": "are too long to be read",
        "truncated": "and all after them cannot be read: the file is damaged or cut off",
        "outside": "lie outside of --since and --until",
    }
)
"""Kinds of lines that are not counted as deliveries."""
NOTED: Final = MappingProxyType(
    {
        "encoding": "have bytes that do not fit the encoding",
        "nul": "have NUL bytes",
        "quote": "have a quote that nothing closes, or that stands within a field",
        "several-lines": "begin a record of several lines",
        "no-zone": "have a time without a zone, taken to be in UTC (see --zone)",
        "other-zone": "have a time in another zone than the first one has",
    }
)
"""Kinds that are only worth knowing: their lines are counted."""


@dataclass(slots=True)
class Kind:
    """How many lines have one thing wrong with them, and which come first."""

    count: int = 0
    lines: list[int] = field(default_factory=list)
    details: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Problems:
    """All that was met in one file."""

    kinds: dict[str, Kind] = field(default_factory=dict)

    def add(self, kind: str, line: int, detail: str = "") -> None:
        """One line more. What is shown of it is its number and, but for masked references, ``detail``."""
        found = self.kinds.get(kind)
        if found is None:
            found = self.kinds[kind] = Kind()
        found.count += 1
        if len(found.lines) < SHOWN:
            found.lines.append(line)
            found.details.append(detail)

    def add_many(self, kind: str, first_line: int, count: int) -> None:
        """As many lines that follow each other."""
        shown = min(count, SHOWN)
        for line in range(first_line, first_line + shown):
            self.add(kind, line)
        self.kinds[kind].count += count - shown

    def count(self, kinds: Iterable[str]) -> int:
        """How many lines have one of these."""
        return sum(self.kinds[kind].count for kind in kinds if kind in self.kinds)

    @property
    def refused(self) -> int:
        """How many rows were not counted."""
        return self.count(REFUSED)
