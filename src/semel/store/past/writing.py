"""The SQL of `semel repeats`: which table is asked about, and its statements, to run or to print.

Names are data here: they come from a person, so each is quoted, and put in by one pass over semel's own text that never
looks at what it has put in. Values are parameters; printed, they are integers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Final

from semel.core.past import AFTER_ALL_MS, BEFORE_ALL_MS
from semel.core.zones import UTC_ZONE, Zone
from semel.errors import ConfigurationError
from semel.sql import read

DIALECTS: Final = ("postgresql", "mysql", "sqlite")
STATEMENTS: Final = (
    "count_rows", "count_repeats", "list_repeats", "list_times", "group_gaps", "group_activity", "group_repeats",
)  # fmt: skip
_MARKS = re.compile(r"\{([a-z_/]+)\}|(?<![:\w]):([a-z_]\w*)")
_PART = re.compile(r'"((?:[^"]|"")+)"|`((?:[^`]|``)+)`|([^."`]+)')
_LONGEST: Final = MappingProxyType({"postgresql": 63, "mysql": 64, "sqlite": 1_000})
_FACTORS: Final = MappingProxyType({"s": "1000", "ms": "1", "us": "0.001", "ns": "0.000001"})


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value's place in a statement."""

    name: str


Pieces = tuple["str | Parameter", ...]


@dataclass(frozen=True)
class HistoryTable:
    """A table or view, the columns that make a reference, and the column with the time."""

    dialect: str
    table: tuple[str, ...]
    """Its name, or its schema and its name."""
    references: tuple[str, ...]
    time: str
    unit: str | None = None
    """What the time's numbers count since 1970: s, ms, us or ns. None: it is a date and time."""
    zone: Zone = UTC_ZONE
    """For times that say none."""
    since_ms: int | None = None
    until_ms: int | None = None
    plain: bool = False
    """The columns are references and milliseconds as they are: semel's own table over a file."""

    @cached_property
    def values(self) -> Mapping[str, int]:
        """The parameters that every statement has."""
        return {
            "since": BEFORE_ALL_MS if self.since_ms is None else self.since_ms,
            "until": AFTER_ALL_MS if self.until_ms is None else self.until_ms,
        }

    def pieces(self, name: str) -> Pieces:
        """The statement called ``name``, such as ``list_repeats``, about this table."""
        return tuple(_pieces(_source(name), self._parts))

    @cached_property
    def _parts(self) -> Mapping[str, Pieces]:
        time = (quote(self.time, self.dialect),)
        columns = [f"ref_{number + 1}" for number in range(len(self.references))]
        referred: list[str | Parameter] = []
        for column, given in zip(columns, self.references, strict=True):
            referred += [", " if referred else "", *self._reference(given), f" AS {column}"]
        parts: dict[str, Pieces] = {
            "table": (".".join(quote(part, self.dialect) for part in self.table),),
            "time": time,
            "columns": (", ".join(columns),),
            "present": (" AND ".join(f"{column} <> ''" for column in columns),),
            "references": tuple(referred),
            "moment": self._moment(time),
            "bounds": (),
        }
        bounded = self.since_ms is not None or self.until_ms is not None
        if bounded and self.dialect == "postgresql" and self.unit is None:
            parts["bounds"] = tuple(_pieces(self._read("bounds"), {"time": time}))
        parts["repeats/kept"] = tuple(_pieces(_source("kept").rstrip("\n"), parts))
        return parts

    def _reference(self, column: str) -> Pieces:
        quoted = (quote(column, self.dialect),)
        return quoted if self.plain else tuple(_pieces(self._read("reference"), {"column": quoted}))

    def _moment(self, time: Pieces) -> Pieces:
        if self.plain:
            return time
        if self.unit is not None:
            return tuple(_pieces(self._read("epoch"), {"time": time, "factor": (_FACTORS[self.unit],)}))
        offset = self.zone.offset
        shift = 0 if offset is None else round(offset.total_seconds() * 1_000)
        return tuple(_pieces(self._read("moment"), {"time": time, "offset_ms": (str(shift),)}))

    def _read(self, part: str) -> str:
        return _source(f"{self.dialect}/{part}").rstrip("\n")


def comment_of(name: str) -> str:
    """What a statement's file says of it."""
    lines = read(f"repeats/{name}.sql").splitlines(keepends=True)
    return "".join(line for line in lines if line.startswith("--"))


def split_name(text: str) -> tuple[str, ...]:
    """A table as people write it: ``orders``, ``shop.orders``, or with parts in quotes where they hold odd letters."""
    parts: list[str] = []
    position = 0
    while True:
        found = _PART.match(text, position)
        if found is None:
            break
        quoted, ticked, bare = found.groups()
        parts.append(bare or (quoted or "").replace('""', '"') or (ticked or "").replace("``", "`"))
        position = found.end()
        if position == len(text) or text[position] != ".":
            break
        position += 1
    if not text or text.endswith(".") or position != len(text) or not 1 <= len(parts) <= 3:
        raise ConfigurationError(
            f"{text!r} names no table.",
            remedy='Write table or schema.table; a part with dots or quotes in it in double quotes: shop."odd.name".',
        )
    return tuple(parts)


def quote(name: str, dialect: str) -> str:
    """A name that a person gave, quoted so that the database takes all of it for a name.

    SQLite would take an unknown name in double quotes for a text: it gets backticks, as MySQL does.
    """
    try:
        size = len(name.encode()) if dialect == "postgresql" else len(name.encode("utf-16-le")) // 2
    except UnicodeEncodeError:
        raise ConfigurationError(f"{name!r} is not text: it has bytes that are no UTF-8.") from None
    if not name or "\0" in name or size > _LONGEST[dialect]:
        unit = "bytes" if dialect == "postgresql" else "letters"
        raise ConfigurationError(
            f"{name[:80]!r} cannot be the name of a table or column.",
            remedy=f"Give one of 1 to {_LONGEST[dialect]} {unit}, without NUL.",
        )
    mark = '"' if dialect == "postgresql" else "`"
    return f"{mark}{name.replace(mark, mark * 2)}{mark}"


def with_percent(pieces: Pieces) -> str:
    """``%(name)s``, for psycopg and MySQL's drivers."""
    return "".join(
        f"%({piece.name})s" if isinstance(piece, Parameter) else piece.replace("%", "%%") for piece in pieces
    )


def with_colon(pieces: Pieces) -> str:
    """``:name``, for sqlite3."""
    return "".join(f":{piece.name}" if isinstance(piece, Parameter) else piece for piece in pieces)


def written_out(pieces: Pieces, values: Mapping[str, int]) -> str:
    """With the values in their places, to be run by hand. They are integers, whatever they were given as."""
    return "".join(
        str(int(values[piece.name])) if isinstance(piece, Parameter) else piece for piece in pieces
    )


def _pieces(text: str, parts: Mapping[str, Pieces]) -> Iterator[str | Parameter]:
    """``text`` with its parts put in. What was put in is not looked at again."""
    position = 0
    for mark in _MARKS.finditer(text):
        yield text[position : mark.start()]
        if mark[1] is not None:
            yield from parts[mark[1]]
        else:
            yield Parameter(mark[2])
        position = mark.end()
    yield text[position:]


def _source(path: str) -> str:
    """The text of one of semel's files, without the comment at its head."""
    lines = read(f"repeats/{path}.sql").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("--"))
