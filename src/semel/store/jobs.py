"""What a worker does to jobs: claim, settle, extend, give back. Each write about an attempt is fenced."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from operator import attrgetter
from typing import Final
from uuid import UUID

import msgspec

from semel.core.job import ClaimedJob
from semel.store.statement import Operation, Rows, Statement, Steps
from semel.store.turns import take_turns

CLAIM_SIZES = (1000, 500, 200, 100, 50, 20, 10, 5, 2, 1)
"""The limits that the claim's text is made with; literals, so that its plan stays cheap."""

_BY_TIME: Final = attrgetter("run_at", "id")
_BY_PRIORITY: Final = attrgetter("priority")

LONGEST_RUN = 100
"""Jobs of one ordering key that one claim takes at most, so that no key keeps the others waiting."""


@dataclass(frozen=True, slots=True)
class Fence:
    """What every write about a running attempt carries."""

    job_id: int
    claim: int
    worker: int


@dataclass(frozen=True, slots=True)
class Claims:
    """The answer to a claim: jobs to run, and those that the claim itself ended because they crash each time."""

    taken: tuple[ClaimedJob, ...]
    ended: tuple[ClaimedJob, ...]
    more: bool = False
    """There may be more due: it took as many as it could."""
    busy: bool = False
    """It looked at nothing: as many others claim the same as may at once."""


class Detail(msgspec.Struct, omit_defaults=True):
    """How one attempt ended, where that is more than plainly done. Times are ISO 8601 with an offset."""

    id: int
    claim: int
    status: str = "done"
    delay: float | None = None
    run_at: str | None = None
    refund: bool = False
    error: msgspec.Raw | None = None
    summary: str | None = None
    result: msgspec.Raw | None = None


def claim(
    *,
    worker: int,
    limit: int,
    lease: timedelta,
    max_crashes: int,
    queues: Sequence[str] | None,
    without: Iterable[str] = (),
    keyless: bool = False,
    turn: str | None = None,
    waiting: bool = False,
) -> Operation[Claims]:
    """Take up to ``limit`` due jobs, in the order they are to start.

    Of these queues and never of those ``without``; with ``keyless`` only those that have no ordering key. Locks the rows it
    takes, waits for none. A crash after the commit leaves them ``running`` until their lease ends. ``turn`` names those who
    claim the same: at most `TURNS` of them claim at once, and the answer to another one is that they are busy; ``waiting``:
    it waits for its turn, and raises `LockBusy` after half a second.
    """
    size = claim_size(limit)
    parameters = claim_parameters(worker, lease, max_crashes) | {
        "queues": None if queues is None else list(queues),
        "without": sorted(without),
        "keyless": keyless,
    }

    def steps() -> Steps[Claims]:
        statement = Statement("queue/claim", parameters, {"limit": str(size)})
        rows = yield take_turns(statement, turn, waiting=waiting)
        return in_order_of_start(read_claims(rows, worker, size))

    return Operation("claim", steps, alone=True)


def claim_in_order(
    *, worker: int, limit: int, lease: timedelta, max_crashes: int, queue: str, start: str = ""
) -> Operation[Claims]:
    """Take up to ``limit`` due jobs of a queue that have an ordering key: of each key the first ones, without a gap.

    None is taken while an earlier one of its key is claimed by anybody, or waits. Keys are served from ``start`` on. It is
    one statement: a process that is frozen while it claims must leave no lock behind that closes keys to the others.
    """
    size = claim_size(limit)
    parameters = claim_parameters(worker, lease, max_crashes) | {"queue": queue, "from": start}

    def steps() -> Steps[Claims]:
        literals = {"limit": str(size), "run": str(LONGEST_RUN)}
        rows = yield Statement("queue/claim_in_order", parameters, literals)
        found = read_claims(rows, worker, size)
        return dataclasses.replace(found, taken=tuple(sorted(found.taken, key=lambda job: job.id)))

    return Operation("claim_in_order", steps, alone=True)


def claim_parameters(worker: int, lease: timedelta, max_crashes: int) -> dict[str, object]:
    """What every form of the claim needs to take a row."""
    return {"worker": worker, "lease": lease.total_seconds(), "max_crashes": max_crashes}


def claim_size(limit: int) -> int:
    """The largest size that a claim's text is made with, up to ``limit``."""
    return next(size for size in CLAIM_SIZES if size <= limit)


def read_claims(rows: Rows, worker: int, size: int) -> Claims:
    """The rows of a claim that could take ``size`` of them; a row without an id says that it had no turn."""
    if rows and rows[0][0] is None:
        return Claims((), (), busy=True)
    taken: list[ClaimedJob] = []
    ended: list[ClaimedJob] = []
    for id_, number, status, kind, payload, attempts, most, crashes, queue, priority, key, run_at in rows:
        job = ClaimedJob(
            id_, number, worker, kind, payload, attempts, most, crashes, queue, priority, run_at, key
        )
        (taken if status == "running" else ended).append(job)
    return Claims(tuple(taken), tuple(ended), more=len(rows) >= size)


def in_order_of_start(found: Claims) -> Claims:
    """Higher priorities first; within one, by time."""
    taken = sorted(sorted(found.taken, key=_BY_TIME), key=_BY_PRIORITY, reverse=True)
    return dataclasses.replace(found, taken=tuple(taken))


def settle(
    fences: Sequence[Fence], details: Iterable[Detail], *, remember: timedelta
) -> Operation[frozenset[tuple[int, int]]]:
    """End a batch of attempts; answers the (id, claim) pairs that were still held. The others are lost.

    ``details`` need only name those that are not plainly done. ``remember`` is how long a unique key of a finished job
    is kept where the job does not say. Locks the rows in id order, and waits for them.
    """
    parameters = _pairs(fences) | {
        "details": msgspec.json.encode(list(details)).decode(),
        "remember": remember.total_seconds(),
    }

    def steps() -> Steps[frozenset[tuple[int, int]]]:
        rows = yield Statement("queue/settle", parameters)
        return frozenset(map(tuple, rows))

    return Operation("settle", steps, alone=True)


def extend(
    fences: Sequence[Fence], *, lease: timedelta, guarded: bool = False
) -> Operation[frozenset[tuple[int, int]]]:
    """Extend exactly these leases, from the database's now; answers the (id, claim) pairs that no longer hold.

    Rows that somebody has locked are skipped, and looked at without a lock: they are not lost. With ``guarded`` the records
    of guarded operations that these jobs act on are extended with them. Each statement commits by itself: a process that is
    frozen between two of them must hold no lock that keeps others from rescuing its jobs.
    """
    parameters = _pairs(fences)

    def steps() -> Steps[frozenset[tuple[int, int]]]:
        rows = yield Statement("queue/extend", parameters | {"lease": lease.total_seconds()})
        extended = {row[0] for row in rows}
        if guarded and extended:
            ids = _numbers(sorted(extended))
            yield Statement("queue/follow_operations", {"ids": ids, "lease": lease.total_seconds()})
        missing = [fence for fence in fences if fence.job_id not in extended]
        if not missing:
            return frozenset()
        rows = yield Statement("queue/find_held", _pairs(missing))
        held = {(row[0], row[1]) for row in rows}
        return frozenset((fence.job_id, fence.claim) for fence in missing) - held

    return Operation("extend", steps, alone=True)


def give_back(fences: Sequence[Fence], *, delay: timedelta = timedelta(0)) -> Operation[int]:
    """Give claims back without charging an attempt; answers how many were still held.

    ``delay`` holds only for jobs with crashes on their count: how long until another worker may rescue them.
    """
    parameters = _pairs(fences) | {"delay": delay.total_seconds()}

    def steps() -> Steps[int]:
        rows = yield Statement("queue/give_back", parameters)
        return len(rows)

    return Operation("give_back", steps, alone=True)


def expire(fences: Sequence[Fence]) -> Operation[int]:
    """End the leases of attempts whose process died, so that the next claim rescues them and counts the crash."""
    parameters = _pairs(fences)

    def steps() -> Steps[int]:
        rows = yield Statement("queue/expire", parameters)
        return len(rows)

    return Operation("expire", steps, alone=True)


def time_out(fence: Fence, *, delay: timedelta, summary: str) -> Operation[str | None]:
    """End an attempt whose process had to be stopped at its time-out; answers the job's status, None where lost.

    ``delay`` is the first attempt's; it doubles with each further one, up to an hour.
    """
    parameters = {
        "id": fence.job_id,
        "claim": fence.claim,
        "worker": fence.worker,
        "delay": delay.total_seconds(),
        "summary": summary,
    }

    def steps() -> Steps[str | None]:
        rows = yield Statement("queue/time_out", parameters)
        return str(rows[0][1]) if rows else None

    return Operation("time_out", steps, alone=True)


def store_progress(rows: Sequence[tuple[Fence, float | None, str | None]]) -> Operation[None]:
    """Store the newest progress of some running attempts; those whose claim is lost are passed over."""
    listed = [
        {
            "id": fence.job_id,
            "claim": fence.claim,
            "worker": fence.worker,
            "fraction": fraction,
            "message": message,
        }
        for fence, fraction, message in rows
    ]

    def steps() -> Steps[None]:
        yield Statement("queue/store_progress", {"rows": msgspec.json.encode(listed).decode()})

    return Operation("store_progress", steps, alone=True)


def _pairs(fences: Sequence[Fence]) -> dict[str, object]:
    return {
        "ids": _numbers([fence.job_id for fence in fences]),
        "claims": _numbers([fence.claim for fence in fences]),
        "workers": _numbers([fence.worker for fence in fences]),
    }


def _numbers(numbers: Iterable[int]) -> str:
    """A bigint array as text: every driver carries it, and none dumps it element by element."""
    return "{" + ",".join(map(str, numbers)) + "}"


def find_settled(fences: Sequence[Fence]) -> Operation[dict[tuple[int, int], str]]:
    """The status of those jobs that are no longer running and still carry these claims.

    Where it is the one that the attempt was to end with, its commit went through and the answer was lost.
    """
    parameters = _pairs(fences)
    del parameters["workers"]

    def steps() -> Steps[dict[tuple[int, int], str]]:
        rows = yield Statement("queue/find_settled", parameters)
        return {(job_id, number): status for job_id, number, status in rows}

    return Operation("find_settled", steps, alone=True)


def installation() -> Operation[UUID]:
    """The name of this installation, from which jobs' references are made."""

    def steps() -> Steps[UUID]:
        rows = yield Statement("queue/installation")
        return UUID(rows[0][0])

    return Operation("installation", steps, alone=True)


def find_lag(queue: str) -> Operation[float | None]:
    """Seconds that the oldest due job of a queue has waited; None where none is due."""

    def steps() -> Steps[float | None]:
        rows = yield Statement("queue/lag", {"queue": queue})
        return float(rows[0][0]) if rows else None

    return Operation("find_lag", steps, alone=True)
