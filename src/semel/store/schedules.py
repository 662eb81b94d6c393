"""Recurring jobs: who is let in for a tick. The unique (schedule, tick) row decides; it outlives the job."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from semel.store.statement import Operation, Statement, Steps


@dataclass(frozen=True, slots=True)
class Recurring:
    """What a tick of one schedule enqueues."""

    name: str
    definition: str
    kind: str
    payload: str
    queue: str
    priority: int
    max_attempts: int


def register_schedule(recurring: Recurring) -> Operation[tuple[datetime, datetime]]:
    """Note a schedule; answers from when on its ticks may be missing, and the database's now.

    That is since when this definition holds, or the newest tick that got its job.
    """
    parameters = {
        "name": recurring.name,
        "definition": recurring.definition,
        "kind": recurring.kind,
    }

    def steps() -> Steps[tuple[datetime, datetime]]:
        rows = yield Statement("queue/register_schedule", parameters)
        return rows[0][0], rows[0][1]

    return Operation("register_schedule", steps, alone=True)


def read_clock() -> Operation[datetime]:
    """The database's clock."""

    def steps() -> Steps[datetime]:
        rows = yield Statement("queue/read_clock")
        answer: datetime = rows[0][0]
        return answer

    return Operation("read_clock", steps, alone=True)


def enqueue_tick(recurring: Recurring, tick: datetime) -> Operation[int | None]:
    """Store the job of one tick; answers its id, or None where another replica had the tick."""
    parameters = {
        "schedule": recurring.name,
        "tick": tick,
        "kind": recurring.kind,
        "payload": recurring.payload,
        "queue": recurring.queue,
        "priority": recurring.priority,
        "max_attempts": recurring.max_attempts,
    }

    def steps() -> Steps[int | None]:
        rows = yield Statement("queue/enqueue_tick", parameters)
        return int(rows[0][0]) if rows else None

    return Operation("enqueue_tick", steps, alone=True)
