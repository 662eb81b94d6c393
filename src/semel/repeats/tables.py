"""CSV and its relatives. One stray quote must not swallow a file: several lines that make no record are read one by one."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Final

from semel.errors import ConfigurationError
from semel.repeats.formats import Found, Wanted
from semel.repeats.lines import LONGEST
from semel.repeats.problems import Problems

DELIMITERS: Final = (",", "\t", ";", "|")
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
) -> Iterator[Found]:
    """Each record's wanted fields, by the header's names, or by their places (1, 2, …) where there is no header."""
    with _large_fields():
        records = _Records(lines, problems, delimiter)
        rows = iter(records)
        first = next(rows, None)
        if first is None:
            return
        places = find_places(first[1] if header else [str(n + 1) for n in range(len(first[1]))], wanted)
        *refer, time = places
        records.width = len(first[1])
        if len(refer) == 1:
            (one,) = refer
            for number, row in rows if header else chain([first], rows):
                yield number, (row[one],), row[time]
            return
        for number, row in rows if header else chain([first], rows):
            yield number, tuple(row[place] for place in refer), row[time]


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


class _Records:
    """(first line's number, fields) of every record that has as many fields as the header."""

    def __init__(self, lines: Iterator[str], problems: Problems, delimiter: str) -> None:
        self._lines = lines
        self._problems = problems
        self._delimiter = delimiter
        self._most = _MOST_LINES
        self._taken: list[str] = []
        self._number = 1
        self.width: int | None = None

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        taken = self._taken
        while True:
            rows = csv.reader(self._watched(), delimiter=self._delimiter, strict=True)
            try:
                for row in rows:
                    if len(row) == self.width and len(taken) == 1:  # nearly always
                        yield self._number, row
                        self._number += 1
                        taken.clear()
                        continue
                    if len(taken) > 1 and not self._fits(row):
                        break
                    yield from self._odd(row)
                else:
                    return
            except (csv.Error, _RunAway) as error:
                if isinstance(error, _RunAway):
                    self._most = max(self._most // 2, _FEWEST_LINES)
            self._lines = chain(taken[1:], self._lines)
            del taken[1:]
            yield from self._odd(self._first_alone())

    def _odd(self, row: list[str]) -> Iterator[tuple[int, list[str]]]:
        """A record that has several lines, another number of fields, or none."""
        if self._fits(row):
            if len(self._taken) > 1:
                self._problems.add("several-lines", self._number)
            yield self._number, row
        elif row:
            self._problems.add("fields", self._number, f"{len(row)} where the header has {self.width}")
        self._number += len(self._taken)
        self._taken.clear()

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
        taken, size = self._taken, 0
        for line in self._lines:
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
