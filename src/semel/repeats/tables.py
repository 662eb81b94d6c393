"""CSV and its relatives. One stray quote must not swallow a file: several lines that make no record are read one by one."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Final

from semel.errors import ConfigurationError
from semel.repeats.formats import Block, Found, Wanted
from semel.repeats.lines import LONGEST
from semel.repeats.problems import Problems

DELIMITERS: Final = (",", "\t", ";", "|")
_AT_ONCE: Final = 256
"""Few, so that the garbage collector has little to look through."""
_FIRST: Final = 1_000_000_000
_MOST_LINES: Final = 10_000
_FEWEST_LINES: Final = 16


class _RunAway(Exception):
    """A record took more lines than one can have: a quote that nothing closes."""


def sniff_delimiter(head: str) -> str:
    """The one that its first line has most of."""
    first = head.lstrip("\r\n").split("\n", 1)[0]
    return max(DELIMITERS, key=first.count)


def read_table(
    lines: Iterator[str], wanted: Wanted, problems: Problems, *, delimiter: str, header: bool
) -> Iterator[Found | Block]:
    """Each record's wanted fields, by the header's names, or by their places (1, 2, …) where there is no header."""
    with _large_fields():
        records = _Records(lines, problems, delimiter)
        number, first = next(records.one_by_one(_FIRST), (1, []))
        if not first:
            return
        names = first if header else [str(place + 1) for place in range(len(first))]
        *refer, time = find_places(names, wanted)
        records.width = len(first)
        if not header:
            yield number, tuple(first[place] for place in refer), first[time]
        for found in records:
            if isinstance(found, tuple):
                number, row = found
                yield number, tuple(row[place] for place in refer), row[time]
            else:
                columns = tuple([row[place] for row in found.rows] for place in refer)
                yield Block(found.first_line, columns, [row[time] for row in found.rows])


def find_places(names: list[str], wanted: Wanted) -> list[int]:
    """Where the wanted columns are."""
    tidy = [name.strip() for name in names]
    for name in wanted.names:
        if tidy.count(name) != 1:
            what = "comes twice" if name in tidy else "is not there"
            shown = ", ".join(column[:40] for column in tidy[:30])
            raise ConfigurationError(
                f"The column {name!r} {what}.",
                remedy=f"The file has: {shown}. Without a header: --no-header.",
            )
    return [tidy.index(name) for name in wanted.names]


@dataclass(frozen=True, slots=True)
class _Plain:
    """Records of one line each, all as wide as the header."""

    first_line: int
    rows: list[list[str]]


class _Records:
    """Every record with the number of its first line: many at once where all of them are plain, else one by one."""

    def __init__(self, lines: Iterator[str], problems: Problems, delimiter: str) -> None:
        self._lines = lines
        self._again: deque[str] = deque()
        """Lines to be read again, before the others."""
        self._taken: list[str] = []
        """Lines of the record that is being read."""
        self._problems = problems
        self._delimiter = delimiter
        self._most = _MOST_LINES
        self._number = 1
        self.width: int | None = None

    def __iter__(self) -> Iterator[_Plain | tuple[int, list[str]]]:
        while True:
            some = [*self._again, *islice(self._lines, _AT_ONCE)]
            self._again.clear()
            if not some:
                return
            rows = self._at_once(some)
            if rows is not None:
                self._number += len(rows)
                yield _Plain(self._number - len(rows), rows)
            else:
                self._again.extend(some)
                yield from self.one_by_one(self._number + len(some))

    def _at_once(self, lines: list[str]) -> list[list[str]] | None:
        try:
            rows = list(csv.reader(lines, delimiter=self._delimiter, strict=True))
        except csv.Error:
            return None
        plain = len(rows) == len(lines) and set(map(len, rows)) == {self.width}
        return rows if plain else None

    def one_by_one(self, end: int) -> Iterator[tuple[int, list[str]]]:
        """As far as the record that comes to line ``end``."""
        while self._number < end:
            rows = csv.reader(self._watched(), delimiter=self._delimiter, strict=True)
            try:
                for row in rows:
                    if len(self._taken) > 1 and not self._fits(row):
                        break
                    yield from self._told(row)
                    if self._number >= end:
                        return
                else:
                    return
            except (csv.Error, _RunAway) as error:
                if isinstance(error, _RunAway):
                    self._most = max(self._most // 2, _FEWEST_LINES)
            self._again.extendleft(reversed(self._taken[1:]))
            del self._taken[1:]
            yield from self._told(self._first_alone())

    def _told(self, row: list[str]) -> Iterator[tuple[int, list[str]]]:
        """The record, or what is wrong with it. Its lines are done with before it is seen."""
        number, lines = self._number, len(self._taken)
        self._number += lines
        self._taken.clear()
        if self._fits(row):
            if lines > 1:
                self._problems.add("several-lines", number)
            yield number, row
        elif row:
            self._problems.add("fields", number, f"{len(row)} where the header has {self.width}")

    def _fits(self, row: list[str]) -> bool:
        return len(row) == self.width or (self.width is None and bool(row))

    def _first_alone(self) -> list[str]:
        """The first line of a record that is none, by itself; its quotes are taken as they stand."""
        line = self._taken[0].rstrip("\r\n")
        try:
            row = next(csv.reader([line], delimiter=self._delimiter), [])
        except csv.Error:
            row = line.split(self._delimiter)
        if self._fits(row):
            self._problems.add("quote", self._number)
        return row

    def _watched(self) -> Iterator[str]:
        taken, again, size = self._taken, self._again, 0
        while True:
            line = again.popleft() if again else next(self._lines, None)
            if line is None:
                return
            taken.append(line)
            if len(taken) > 1:
                size = size + len(line) if len(taken) > 2 else len(line)
                if len(taken) > self._most or size > LONGEST:
                    raise _RunAway
            yield line


@contextmanager
def _large_fields() -> Iterator[None]:
    """csv's limit is one for the whole process; as long as this reads, a field may be as long as a line."""
    before = csv.field_size_limit(LONGEST * 2)
    try:
        yield
    finally:
        csv.field_size_limit(before)
