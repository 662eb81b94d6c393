"""What the records tell of runs: durations, leases that were too short, what is open. Only reads, and locks nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from semel.core.measured import Open, Runs
from semel.core.operations import State
from semel.store.statement import Operation, Statement, Steps

KEY: Final = ("scope", "job_type", "key")
"""What makes one operation one row."""


def measure_runs(job_type: str | None = None, *, within: timedelta) -> Operation[tuple[Runs, ...]]:
    """Per job type, the attempts that acted and completed in that time."""

    def steps() -> Steps[tuple[Runs, ...]]:
        parameters = {"job_type": job_type, "within": within.total_seconds()}
        rows = yield Statement("guard/measure_runs", parameters)
        return tuple(
            Runs(
                job_type=name,
                count=int(count),
                p99=_duration(p99),
                longest=_duration(longest),
                first=datetime.fromtimestamp(float(first), UTC),
                last=datetime.fromtimestamp(float(last), UTC),
                past_lease=int(past),
                longest_past_lease=_duration(by),
            )
            for name, count, p99, longest, first, last, past, by in rows
        )

    return Operation("measure_runs", steps, alone=True)


def count_open() -> Operation[tuple[Open, ...]]:
    """Per job type and state, what is not completed."""

    def steps() -> Steps[tuple[Open, ...]]:
        rows = yield Statement("guard/count_open")
        return tuple(
            Open(
                job_type=name,
                state=State(state),
                count=int(count),
                longest=_duration(longest),
                oldest_claim=_duration(claimed),
            )
            for name, state, count, longest, claimed in rows
        )

    return Operation("count_open", steps, alone=True)


def has_unique_key() -> Operation[bool | None]:
    """Whether the constraint is there that makes one operation one row; None where the table is not."""

    def steps() -> Steps[bool | None]:
        rows = yield Statement("guard/find_unique")
        if not rows:
            return None
        found = {frozenset(index.split(",")) for index in _text(rows[0][0]).split(";") if index}
        return any(index <= frozenset(KEY) for index in found)

    return Operation("has_unique_key", steps, alone=True)


def read_server() -> Operation[tuple[str, str, str, str]]:
    """The server's version, and three settings of what it does at a commit."""

    def steps() -> Steps[tuple[str, str, str, str]]:
        rows = yield Statement("guard/read_server")
        version, first, second, third = (_text(each) for each in rows[0])
        return version, first, second, third

    return Operation("read_server", steps, alone=True)


def _duration(seconds: Any) -> timedelta:
    return timedelta(seconds=max(round(float(seconds or 0), 3), 0.0))


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes | bytearray) else str(value)
