"""Where a file's deliveries are grouped: a SQLite database without a name, which spills to disk and ends with the process.

Memory stays bounded by its cache, whatever the file's size; nothing is left behind, not even by a kill.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Final

from semel.core.past import Past
from semel.errors import DatabaseUnreachable
from semel.sql import read
from semel.store.past.finding import count, group_gaps, list_repeats, to_buckets
from semel.store.past.reading import SqliteReader
from semel.store.past.sieve import Deliveries, Sieve
from semel.store.past.writing import HistoryTable

_SETTINGS: Final = (
    "PRAGMA journal_mode = OFF",
    "PRAGMA synchronous = OFF",
    "PRAGMA temp_store = FILE",
    "PRAGMA cache_size = -65536",
    "PRAGMA locking_mode = EXCLUSIVE",
)


class Scratch:
    """Deliveries of a file: add them once, then ask."""

    def __init__(self, connection: sqlite3.Connection, width: int, sieve: Sieve) -> None:
        self._connection = connection
        self._width = width
        self._sieve = sieve
        self._columns = [f"ref_{number + 1}" for number in range(width)]

    def add(self, deliveries: Iterable[Deliveries]) -> None:
        """All of them. An error of what makes them passes."""
        for some in deliveries:
            with _full():
                self._sieve.add(some)

    def find_repeats(self, *, most_listed: int) -> Past:
        """All that is told of the file's repeats; what could not be counted is known to who read the file."""
        sieve = self._sieve
        with _full():
            marks = ", ".join("?" * (self._width + 1))
            self._connection.execute("BEGIN")
            self._connection.executemany(self._text("insert_delivery", marks=marks), sieve.take_out())
            self._connection.execute("COMMIT")
            self._connection.execute(self._text("keep_repeated", columns=", ".join(self._columns)))
            reader = SqliteReader(self._connection, None)
            repeated = self._table("repeated")
            counts = replace(
                count(reader, repeated),
                rows=sieve.count,
                deliveries=sieve.count,
                first_ms=sieve.first_ms if sieve.count else None,
                last_ms=sieve.last_ms if sieve.count else None,
            )
            return Past(
                counts=counts,
                listed=list_repeats(reader, repeated, most_listed),
                gaps=group_gaps(reader, repeated),
                buckets=to_buckets(sieve.activity, reader, repeated, sieve.step_ms),
                step_ms=sieve.step_ms,
            )

    def _table(self, name: str) -> HistoryTable:
        return HistoryTable("sqlite", (name,), tuple(self._columns), "at_ms", plain=True)

    def _text(self, name: str, **literals: str) -> str:
        text = read(f"repeats/scratch/{name}.sql")
        for literal, value in literals.items():
            text = text.replace(f"{{{literal}}}", value)
        return text


@contextmanager
def open_scratch(width: int) -> Iterator[Scratch]:
    """An empty one, for references of so many parts."""
    with closing(sqlite3.connect("", isolation_level=None)) as connection:
        for setting in _SETTINGS:
            connection.execute(setting)
        definitions = ", ".join(f"ref_{number + 1} NOT NULL" for number in range(width))
        text = read("repeats/scratch/make_deliveries.sql").replace("{definitions}", definitions)
        connection.execute(text)
        with Sieve() as sieve:
            yield Scratch(connection, width, sieve)


@contextmanager
def _full() -> Iterator[None]:
    try:
        yield
    except (sqlite3.OperationalError, OSError) as error:
        raise DatabaseUnreachable(
            f"The deliveries could not be grouped on disk: {error}.",
            holds="Nothing is left behind.",
            remedy="Give it room: TMPDIR=/a/larger/disk semel repeats …",
        ) from error
