"""Claims that begin where the last ones ended, and the sweep that finds what lies before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from semel.store.jobs import Claims, claim_parameters, claim_size, in_order_of_start, read_claims
from semel.store.sleep import Serves, serving_parameters
from semel.store.statement import Operation, Statement, Steps
from semel.store.turns import take_turns

_EARLIEST: Final = "-infinity"


class Lane(NamedTuple):
    """Jobs that are served in the order of their times."""

    queue: str
    priority: int


class Mark(NamedTuple):
    """A place in a lane. ``run_at`` None: its beginning."""

    run_at: datetime | None
    id: int

    def is_before(self, other: Mark) -> bool:
        """Whether a claim from here reads the other one too."""
        if self.run_at is None or other.run_at is None:
            return self.run_at is None
        return (self.run_at, self.id) < (other.run_at, other.id)


@dataclass(frozen=True, slots=True)
class Swept:
    """What there was to claim, read from the beginning of every lane."""

    due: Mapping[Lane, Mark]
    """The first job of each lane that might be claimed."""
    waiting: tuple[Lane, ...]
    """Lanes that have jobs, and none that might be claimed."""
    asked: Mark
    """Before it lies what was due then; what falls due later lies behind."""
    seconds: float
    """How long the server took."""


def claim_marked(
    marks: Mapping[Lane, Mark],
    *,
    worker: int,
    limit: int,
    lease: timedelta,
    max_crashes: int,
    turn: str | None = None,
    waiting: bool = False,
) -> Operation[Claims]:
    """Take up to ``limit`` due jobs of these lanes, in the order given, each from its mark on.

    As `claim` otherwise. What lies before a mark by more than a second is not seen: no answer means that nothing is due.
    """
    size = claim_size(limit)
    parameters = claim_parameters(worker, lease, max_crashes) | {
        "lanes": [lane.queue for lane in marks],
        "priorities": [lane.priority for lane in marks],
        "run_ats": [mark.run_at.isoformat() if mark.run_at else _EARLIEST for mark in marks.values()],
        "ids": [mark.id for mark in marks.values()],
        "keyless": False,
    }

    def steps() -> Steps[Claims]:
        statement = Statement("queue/claim_marked", parameters, {"limit": str(size)})
        rows = yield take_turns(statement, turn, waiting=waiting)
        return in_order_of_start(read_claims(rows, worker, size))

    return Operation("claim", steps, alone=True)


def sweep(serves: Serves) -> Operation[Swept]:
    """Find the lanes and what may be claimed in each, from their beginning.

    It only reads; the more dead rows lie in front, the longer it takes.
    """
    parameters = serving_parameters(serves)

    def steps() -> Steps[Swept]:
        rows = yield Statement("queue/sweep", parameters)
        due, waiting = {}, []
        for queue, priority, run_at, id_, _, _ in rows:
            if id_ is not None:
                due[Lane(queue, priority)] = Mark(run_at, id_)
            elif queue is not None:
                waiting.append(Lane(queue, priority))
        *_, now, seconds = rows[-1]
        return Swept(due, tuple(waiting), Mark(now, 0), seconds)

    return Operation("sweep", steps, alone=True)
