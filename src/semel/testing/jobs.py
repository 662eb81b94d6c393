"""Stored jobs as tests look at them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import msgspec

from semel.core.states import Status
from semel.store.statement import Operation, Row, Statement, Steps

_OTHERS: Final = 20
"""Jobs of other kinds that a failure's message may show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """One stored job, whatever became of it."""

    id: int
    kind: str
    queue: str
    status: Status
    payload: Mapping[str, Any]
    """The arguments as they are stored: JSON by name, without those left to their defaults."""
    priority: int
    attempts: int
    max_attempts: int
    run_at: datetime
    created_at: datetime
    unique_key: str | None
    ordering_key: str | None
    last_error: str | None
    raw: str = field(repr=False, default="")
    """The payload's text."""

    def __str__(self) -> str:
        line = f"job {self.id} {self.kind} {self.payload} queue={self.queue} {self.status}"
        return f"{line} unique_key={self.unique_key}" if self.unique_key is not None else line


@dataclass(frozen=True, slots=True)
class Stored:
    """Every job of a kind, and some of the others."""

    jobs: tuple[JobRow, ...]
    others: tuple[JobRow, ...] = ()


def find_stored(kind: str | None) -> Operation[Stored]:
    """Every job of this kind and some of other kinds, or (None) every job."""

    def steps() -> Steps[Stored]:
        rows = yield Statement("testing/find_jobs", {"kind": kind, "other_than": None, "limit": None})
        if kind is None:
            return Stored(tuple(map(_row, rows)))
        others = yield Statement("testing/find_jobs", {"kind": None, "other_than": kind, "limit": _OTHERS})
        return Stored(tuple(map(_row, rows)), tuple(map(_row, others)))

    return Operation("find_stored", steps, alone=True)


def _row(row: Row) -> JobRow:
    return JobRow(
        id=row[0],
        kind=row[1],
        queue=row[2],
        status=Status(row[3]),
        payload=msgspec.json.decode(row[4]),
        raw=row[4],
        priority=row[5],
        attempts=row[6],
        max_attempts=row[7],
        run_at=row[8],
        created_at=row[9],
        unique_key=row[10],
        ordering_key=row[11],
        last_error=row[12],
    )
