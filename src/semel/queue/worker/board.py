"""What one child holds at a moment: jobs that wait, the ones that run, the endings that are not written yet."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from semel.core.decide import Settlement
from semel.core.job import ClaimedJob
from semel.queue.worker.slots import SlotTable
from semel.store.jobs import Detail, Fence

_RUN_TIME_WEIGHT = 0.1


class Held(msgspec.Struct, eq=False):
    """One claim of this child, from the claim to the confirmed settlement."""

    job: ClaimedJob
    slot: int
    since: float
    started: float | None = None
    deadline: float | None = None
    lost: bool = False
    ended_by: str | None = None
    """Why the worker itself ended the attempt: ``time-out``, ``stop`` or ``lost``; None while it did not."""
    interrupt: Callable[[], object] | None = None
    """Asks the running handler to end."""
    settled: bool = False
    """Its transaction committed the end together with the work: nothing is left to write."""
    settling: bool = False
    """Its transaction was about to commit the end: where the answer was lost, the job may be done all the same."""
    seconds: float = 0.0
    """How long its handler took."""
    task: asyncio.Task[None] | None = None
    """That of an ``async def`` handler, until its end is noted."""
    progress: tuple[float | None, str | None] | None = None

    @property
    def fence(self) -> Fence:
        return Fence(self.job.id, self.job.claim, self.job.worker)

    @property
    def stopping(self) -> bool:
        return self.ended_by is not None

    def report(self, fraction: float | None, message: str | None) -> None:
        self.progress = (fraction, message)


class Ending(msgspec.Struct, eq=False):
    """How an attempt ended, waiting to be written. ``detail`` is None for plainly done."""

    held: Held
    detail: Detail | None
    settlement: Settlement | None = None
    """What is logged once it is written."""
    give_back: bool = False
    at_once: bool = False
    """Where a job with crashes on its count is given back: anybody may claim it now, not after a lease."""

    written: bool = False
    waits: bool = False
    """Somebody else holds its row's lock: it was tried, and is tried again."""

    @property
    def status(self) -> str:
        return "done" if self.detail is None else self.detail.status


@dataclass(slots=True)
class Counts:
    """What a child did since it started."""

    claimed: int = 0
    done: int = 0
    retried: int = 0
    failed: int = 0
    other: int = 0
    lost: int = 0


@dataclass(slots=True)
class Board:
    """The state that claiming, running and settling share; touched only from the child's event loop."""

    slots: SlotTable
    relayed: bool = False
    """Of a relay: no job is suspected of having ended it, and what waits keeps its order."""
    waiting: deque[Held] = field(default_factory=deque)
    alone: deque[Held] = field(default_factory=deque)
    """Jobs with a crash on their count: each runs with no other beside it, so that a killer harms no neighbour."""
    running: dict[int, Held] = field(default_factory=dict)
    endings: list[Ending] = field(default_factory=list)
    flushing: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there may be room to claim."""
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when endings wait to be written."""
    counts: Counts = field(default_factory=Counts)
    run_time: float = 0.0
    """Seconds an attempt takes, a moving average; 0 while nothing is known."""

    def hold(self, job: ClaimedJob, claimed: float) -> Held:
        """Note a new claim, in the slots first."""
        slot = self.slots.take(job.id, job.claim, job.worker, claimed)
        held = Held(job, slot, time.monotonic())
        self.counts.claimed += 1
        (self.alone if job.crashes and not self.relayed else self.waiting).append(held)
        return held

    def end(self, ending: Ending) -> None:
        """Note an ending; the slot stays until it is written."""
        self.endings.append(ending)
        self.settled.set()

    def release(self, held: Held) -> None:
        """The ending is confirmed, or the claim is lost: nothing is held any more."""
        self.slots.clear(held.slot)
        self.changed.set()

    def learn(self, held: Held) -> None:
        """Note how long an attempt took."""
        if held.started is not None:
            taken = held.seconds or time.monotonic() - held.started
            held.seconds, known = taken, self.run_time
            self.run_time = taken if not known else known + _RUN_TIME_WEIGHT * (taken - known)

    @property
    def quiet(self) -> bool:
        """Nothing runs and nothing waits to be written: a job may run alone now."""
        return not self.running and not self.endings and not self.flushing

    @property
    def empty(self) -> bool:
        return self.quiet and not self.waiting and not self.alone
