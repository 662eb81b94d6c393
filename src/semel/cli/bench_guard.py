"""`semel bench --guard`: what the guard costs.

A `Row()` adds one statement each way to the caller's transaction at READ COMMITTED; an outside effect adds three short
commits: claim, acting, completion. The test of the counts is tests/bench. Here they are timed, on one connection.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from semel.cli.benched import SCHEMA
from semel.core.effects import Hold, Row
from semel.guard.once import Once
from semel.guard.operation import Operation
from semel.sql import Catalogue
from semel.store.bench import effect, make_effects
from semel.store.guard_tables import create_tables
from semel.store.own_connections import open_own
from semel.store.run import run
from semel.store.sessions import sync_session_for

TABLES: Final = (("postgresql", f'"{SCHEMA}"."effects"'), ("sqlite", "effects"))
_WARM_UP: Final = 20


@dataclass(frozen=True, slots=True)
class Calls:
    """The four calls that are compared; each takes a number that none took before."""

    plain: Callable[[int], object]
    """A transaction that writes one row."""
    row: Callable[[int], object]
    """The same, as a guarded operation."""
    outside: Callable[[int], object]
    """A guarded outside effect that takes no time itself."""
    repeat: Callable[[int], object]
    """A further delivery of an operation that is completed."""


def measure_guard(url: str, operations: int, repeat: int) -> dict[str, object]:
    """Calls a second on PostgreSQL, in the benchmark's schema, and on a SQLite file of their own."""
    with tempfile.TemporaryDirectory(prefix="semel-bench-") as directory:
        targets = (url, str(Path(directory) / "guard.db"))
        return {
            "operations": operations,
            "repeat": repeat,
            "guard": {
                dialect: _measure(target, table, operations, repeat)
                for (dialect, table), target in zip(TABLES, targets, strict=True)
            },
        }


def median(repeat: int, measure: Callable[[], float]) -> dict[str, float]:
    """A measurement that is made several times."""
    figures = sorted(measure() for _ in range(repeat))
    return {
        "median": round(statistics.median(figures)),
        "least": round(figures[0]),
        "most": round(figures[-1]),
    }


def _measure(target: str, table: str, operations: int, repeat: int) -> dict[str, object]:
    create_tables(target, schema=SCHEMA)
    once = Once(target, schema=SCHEMA)
    plain = open_own(target, schema=SCHEMA)
    with plain.session() as session:
        run(make_effects(table), session)
    numbers = itertools.count()
    try:
        calls = make_calls(once, plain, table)
        calls.repeat(0)
        named = (("plain_row", calls.plain), ("guarded_row", calls.row), ("guarded_outside", calls.outside))
        rates = {
            f"{name}_per_second": median(repeat, lambda call=call: _rate(call, numbers, operations))  # type: ignore[misc]
            for name, call in (*named, ("repeat", calls.repeat))
        }
    finally:
        once.close()
        plain.close()
    return dict(rates)


def make_calls(once: Once, plain: Any, table: str) -> Calls:
    """The calls that are compared, over one database."""
    catalogue = Catalogue(SCHEMA, plain.dialect)

    @once.operation("bench-row", key="number", effect=Row())
    def in_row(op: Operation, number: int) -> None:
        run(effect(table, number), sync_session_for(op.connection, catalogue))

    @once.operation("bench-outside", key="number", effect=Hold(), acting="explicit")
    def outside(op: Operation, number: int) -> None:
        with op.acting():
            pass

    def in_transaction(number: int) -> None:
        with plain.session() as session, session.transaction():
            run(effect(table, number), session)

    return Calls(in_transaction, in_row, outside, lambda number: outside(-1))


def _rate(call: Callable[[int], object], numbers: Iterator[int], count: int) -> float:
    for number in itertools.islice(numbers, _WARM_UP):
        call(number)
    began = time.perf_counter()
    for number in itertools.islice(numbers, count):
        call(number)
    return count / (time.perf_counter() - began)
