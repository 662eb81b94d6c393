"""What people read about operations, on any of the guard's databases. Nothing here locks or changes anything."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from semel.core.operation_report import (
    OperationEvent,
    OperationFilter,
    OperationPage,
    OperationRecord,
    OperationSummary,
    Waiting,
)
from semel.core.operations import Outcome, State
from semel.core.people import UNCLAIMED
from semel.core.report import When
from semel.store.guard_request import text_of
from semel.store.statement import Operation, Row, Statement, Steps

_SUMMARY_COLUMNS: Final = 29


def list_operations(
    wanted: OperationFilter, *, limit: int = 50, before_id: int | None = None
) -> Operation[OperationPage]:
    """At most ``limit`` operations, newest first; ``before_id`` goes on after a page."""

    def steps() -> Steps[OperationPage]:
        now = yield from _clock()
        parameters = _parameters(wanted, now) | {"before_id": before_id}
        literals = _states(wanted) | {"limit": str(int(limit) + 1)}
        rows = yield Statement("guard/list_operations", parameters, literals)
        found = tuple(_summary(row) for row in rows[:limit])
        return OperationPage(now, found, found[-1].id if len(rows) > limit else None)

    return Operation("list_operations", steps)


def count_operations(wanted: OperationFilter) -> Operation[tuple[int, int]]:
    """How many there are, and the newest one's id."""

    def steps() -> Steps[tuple[int, int]]:
        now = yield from _clock()
        rows = yield Statement("guard/count_operations", _parameters(wanted, now), _states(wanted))
        return int(rows[0][0]), int(rows[0][1])

    return Operation("count_operations", steps)


def list_adapters(wanted: OperationFilter) -> Operation[frozenset[str]]:
    """By which adapters the messages came that these operations keep."""

    def steps() -> Steps[frozenset[str]]:
        now = yield from _clock()
        rows = yield Statement("guard/list_adapters", _parameters(wanted, now), _states(wanted))
        return frozenset(text_of(name) for (name,) in rows if name is not None)

    return Operation("list_adapters", steps)


def find_operation(operation_id: int) -> Operation[OperationRecord | None]:
    """One operation with its history; None where there is none."""

    def steps() -> Steps[OperationRecord | None]:
        now = yield from _clock()
        rows = yield Statement("guard/operation", {"id": operation_id})
        if not rows:
            return None
        events = yield from list_operation_events(operation_id).steps()
        result, message, unsure_until = rows[0][_SUMMARY_COLUMNS:]
        return OperationRecord(
            as_of=now,
            operation=_summary(rows[0]),
            result=from_json(result),
            message=from_json(message),
            unsure_until=_moment(unsure_until),
            events=events,
        )

    return Operation("find_operation", steps)


def list_operation_events(operation_id: int) -> Operation[tuple[OperationEvent, ...]]:
    """An operation's history, which outlives it for a while."""

    def steps() -> Steps[tuple[OperationEvent, ...]]:
        rows = yield Statement("guard/operation_events", {"id": operation_id})
        return tuple(
            OperationEvent(_instant(at), event, int(claim), who, why, from_json(detail))
            for at, event, claim, who, why, detail in rows
        )

    return Operation("list_operation_events", steps, alone=True)


def count_waiting(*, idle: timedelta = UNCLAIMED) -> Operation[tuple[Waiting, ...]]:
    """Per job type, what waits for somebody: held, stale and not delivered again, released and not claimed."""

    def steps() -> Steps[tuple[Waiting, ...]]:
        rows = yield Statement("guard/count_stale", {"idle": idle.total_seconds()})
        return tuple(
            Waiting(job_type, int(held), int(stale), int(released), timedelta(seconds=float(longest)))
            for job_type, held, stale, released, longest in rows
        )

    return Operation("count_waiting", steps, alone=True)


def has_queue() -> Operation[bool]:
    """Whether the queue's tables are beside the operations; on PostgreSQL only."""

    def steps() -> Steps[bool]:
        rows = yield Statement("guard/has_queue")
        return bool(rows[0][0])

    return Operation("guard_has_queue", steps, alone=True)


def from_json(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _clock() -> Steps[datetime]:
    rows = yield Statement("guard/read_clock")
    return _instant(rows[0][0])


def _parameters(wanted: OperationFilter, now: datetime) -> dict[str, Any]:
    def seconds(when: When | None) -> float | None:
        instant = now - when if isinstance(when, timedelta) else when
        return None if instant is None else instant.timestamp()

    return {
        "job_type": wanted.job_type,
        "scope": wanted.scope,
        "label": wanted.label,
        "key": wanted.key,
        "changed_before": seconds(wanted.changed_before),
        "changed_after": seconds(wanted.changed_after),
        "idle": None if wanted.idle is None else wanted.idle.total_seconds(),
        "unclaimed": _beyond(wanted.idle),
    }


def _beyond(idle: timedelta | None) -> float:
    """Seconds more that a released operation has to wait than a claim before it counts: its next delivery may be due."""
    return 0.0 if idle is None else max((UNCLAIMED - idle).total_seconds(), 0.0)


def _states(wanted: OperationFilter) -> dict[str, str]:
    states = wanted.states or frozenset(State)
    return {"states": ", ".join(f"'{state.value}'" for state in State if state in states)}


def _instant(seconds: Any) -> datetime:
    return datetime.fromtimestamp(float(seconds), UTC)


def _moment(seconds: Any) -> datetime | None:
    return None if seconds is None else _instant(seconds)


def _summary(row: Row) -> OperationSummary:
    return OperationSummary(
        id=int(row[0]),
        scope=row[1],
        job_type=row[2],
        key=row[3],
        label=row[4],
        state=State(row[5]),
        outcome=None if row[6] is None else Outcome(row[6]),
        claim=int(row[7]),
        revision=int(row[8]),
        effect=row[9],
        created_at=_instant(row[10]),
        changed_at=_instant(row[11]),
        claimed_at=_instant(row[12]),
        lease_until=_instant(row[13]),
        acting_at=_moment(row[14]),
        completed_at=_moment(row[15]),
        claims=int(row[16]),
        unsure=int(row[17]),
        takeovers=int(row[18]),
        looks=int(row[19]),
        extra_used=int(row[20]),
        reference=row[21],
        generation=int(row[22]),
        reference_at=_instant(row[23]),
        held_reason=row[24],
        last_error=row[25],
        message_kept=bool(row[26]),
        key_version=int(row[27]),
        result_dropped=bool(row[28]),
    )
