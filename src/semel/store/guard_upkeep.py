"""Retention of operations, in small batches that skip what others have locked. Claimed and held ones never expire."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from semel.store.statement import Operation, Statement, Steps

EVENTS_BATCH: Final = 1000


@dataclass(frozen=True, slots=True)
class EventsPurged:
    """One window of the history: where it ended, and whether older ones may follow."""

    deleted: int
    last: int
    more: bool


def purge_completed(*, keep: timedelta) -> Operation[int]:
    """Delete up to 1,000 completed operations that ended longer ago than ``keep``."""
    return _purge("completed", keep)


def purge_released(*, keep: timedelta) -> Operation[int]:
    """Delete up to 1,000 released operations that nobody claimed for ``keep``."""
    return _purge("released", keep)


def count_purge(*, completed: timedelta, released: timedelta) -> Operation[tuple[int, int]]:
    """How many completed and how many released ones are past their retention."""

    def steps() -> Steps[tuple[int, int]]:
        parameters = {"completed": completed.total_seconds(), "released": released.total_seconds()}
        rows = yield Statement("guard/count_purge", parameters)
        return int(rows[0][0]), int(rows[0][1])

    return Operation("guard_count_purge", steps, alone=True)


def purge_operation_events(*, keep: timedelta, after: int = 0) -> Operation[EventsPurged]:
    """Delete events older than ``keep`` of operations that are gone, among the 1,000 events after that id."""

    def steps() -> Steps[EventsPurged]:
        ((count, last, youngest),) = yield Statement("guard/events_window", {"after": after})
        if not count:
            return EventsPurged(0, after, False)
        parameters = {"after": after, "last": last, "keep": keep.total_seconds()}
        rows = yield Statement("guard/purge_events", parameters)
        more = int(count) >= EVENTS_BATCH and float(youngest) > keep.total_seconds()
        return EventsPurged(len(rows), int(last), more)

    return Operation("guard_purge_events", steps)


def _purge(state: str, keep: timedelta) -> Operation[int]:
    def steps() -> Steps[int]:
        rows = yield Statement(f"guard/purge_{state}", {"keep": keep.total_seconds()})
        return len(rows)

    return Operation(f"guard_purge_{state}", steps, alone=True)
