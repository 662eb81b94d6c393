"""House-keeping, by every supervisor at once: no leader, each statement takes small batches and skips what others have."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from semel.sql import quote_name
from semel.store.statement import Operation, Statement, Steps

BATCH = 1000
"""Rows that one clean-up statement takes at most; where it answers as many, there may be more."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """A queue in which jobs wait although they are long due."""

    queue: str
    expired: int
    """Running, their lease ended long ago, and nobody claimed them."""
    due: int
    oldest: timedelta


@dataclass(frozen=True, slots=True)
class HistoryDay:
    """One day's table of the history."""

    table: str
    state: str
    """``attached``, ``detaching`` (an interrupted detach) or ``detached``."""
    expired: bool


def make_history_days(*, ahead: int = 7) -> Operation[int]:
    """Make the history's missing days from today (UTC); answers how many. Readers and completions do not wait for it."""
    return _count("make_history_days", {"days": ahead})


def finish_kept(*, remember: timedelta) -> Operation[int]:
    """Move to the history what ended in place: remembered unique keys that are old enough, foreign programs' done jobs."""
    return _count("finish_kept", {"remember": remember.total_seconds()})


def purge_failed(*, keep: timedelta) -> Operation[int]:
    """Delete dead letters older than ``keep``."""
    return _count("purge_failed", {"keep": keep.total_seconds()})


def purge_ticks(*, keep: timedelta) -> Operation[int]:
    """Delete schedule ticks older than ``keep``, never a schedule's newest."""
    return _count("purge_ticks", {"keep": keep.total_seconds()})


def purge_events(*, keep: timedelta) -> Operation[int]:
    """Delete what people did to jobs, older than ``keep``."""
    return _count("purge_events", {"keep": keep.total_seconds()})


def purge_progress() -> Operation[int]:
    """Delete the progress of jobs that ended more than a day ago."""
    return _count("purge_progress", {})


def purge_sleepers() -> Operation[int]:
    """Delete the notes of children that are gone."""
    return _count("purge_sleepers", {})


def find_stuck(*, age: timedelta) -> Operation[tuple[Stuck, ...]]:
    """The queues in which jobs have been due, or their lease over, for longer than ``age``."""

    def steps() -> Steps[tuple[Stuck, ...]]:
        rows = yield Statement("queue/find_stuck", {"age": age.total_seconds()})
        return tuple(
            Stuck(queue, expired, due, timedelta(seconds=float(oldest)))
            for queue, expired, due, oldest in rows
        )

    return Operation("find_stuck", steps, alone=True)


def find_history_days(schema: str, *, keep: timedelta) -> Operation[tuple[HistoryDay, ...]]:
    """The history's days, and which of them are wholly older than ``keep``."""

    def steps() -> Steps[tuple[HistoryDay, ...]]:
        rows = yield Statement("queue/find_history_days", {"schema": schema, "keep": keep.total_seconds()})
        return tuple(HistoryDay(table, state, expired) for table, state, expired in rows)

    return Operation("find_history_days", steps, alone=True)


def set_lock_timeout() -> Operation[None]:
    """Let this connection's statements give up a lock after two seconds: upkeep never makes others queue behind it."""
    return _plain("set_lock_timeout", {})


def detach_history_day(day: HistoryDay) -> Operation[None]:
    """Take a day out of the history, or finish an interrupted attempt. Outside a transaction; waits for readers."""
    verb = "finalize_history_day" if day.state == "detaching" else "detach_history_day"
    return _plain(verb, {"day": quote_name(day.table)})


def drop_history_day(day: HistoryDay) -> Operation[None]:
    """Drop a day that was taken out of the history."""
    return _plain("drop_history_day", {"day": quote_name(day.table)})


def _count(name: str, parameters: dict[str, object]) -> Operation[int]:
    def steps() -> Steps[int]:
        rows = yield Statement(f"queue/{name}", parameters)
        return int(rows[0][0])

    return Operation(name, steps, alone=True)


def _plain(name: str, literals: dict[str, str]) -> Operation[None]:
    def steps() -> Steps[None]:
        yield Statement(f"queue/{name}", {}, literals)

    return Operation(name, steps, alone=True)
