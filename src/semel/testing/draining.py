"""Running, in a test, what is due: the real engine on the real tables, until nothing is left to do."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from semel.core.durations import Duration, to_timedelta
from semel.core.job import ClaimedJob
from semel.errors import ConfigurationError
from semel.queue.app import App
from semel.queue.worker.board import Board
from semel.queue.worker.embedded import EmbeddedWorker
from semel.queue.worker.slots import SlotTable
from semel.store.pools import Database
from semel.store.run import run_async
from semel.store.statement import Operation, Rows, Statement, Steps
from semel.testing.loops import run_in_loop
from semel.testing.outcomes import AttemptOutcome, Outcome, raise_first
from semel.testing.watching import Notes, WatchedApp, WatchedBoard

Until: TypeAlias = Literal["due", "empty"]
"""Until nothing is due, or until nothing waits at all: delayed jobs and retries are then waited for."""

_LOOK: Final = 0.005
"""Seconds between two looks at the engine."""

_SHOWN: Final = 10


class DrainIncomplete(AssertionError):
    """Jobs were still to do when a drain's time, or its number of attempts, was used up."""


@dataclass(frozen=True, slots=True)
class Drained:
    """What a drain did. ``outcomes`` are in the order in which the attempts ended."""

    outcomes: tuple[AttemptOutcome, ...]
    lost: int = 0
    """Attempts whose end was not written, because the job was cancelled or taken over meanwhile."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Attempts by outcome; every outcome is there: ``counts["retried"]``."""
        found = Counter(outcome.outcome for outcome in self.outcomes)
        return MappingProxyType({word.value: found[word] for word in Outcome})

    def of(self, kind: str) -> tuple[AttemptOutcome, ...]:
        """The attempts of one kind of job."""
        return tuple(outcome for outcome in self.outcomes if outcome.job.kind == kind)


def drain(
    app: App,
    *,
    queues: Sequence[str] | None = None,
    limit: int = 1_000,
    until: Until = "due",
    raise_errors: bool = False,
    skip_waiting: bool = False,
    within: Duration = 30,
    concurrency: int = 1,
) -> Drained:
    """Run what is due, and what becomes due by it, in this process; answers how each attempt ended.

    Only what is committed is there to run. ``skip_waiting`` makes delayed jobs and retries due, in the order of
    their time, whenever nothing else is left. ``raise_errors`` ends the drain with the first error. Raises
    DrainIncomplete after more than ``limit`` attempts, or when the time ``within`` is over.
    """
    return run_in_loop(
        app,
        "drain",
        lambda: adrain(
            app,
            queues=queues,
            limit=limit,
            until=until,
            raise_errors=raise_errors,
            skip_waiting=skip_waiting,
            within=within,
            concurrency=concurrency,
        ),
    )


async def adrain(
    app: App,
    *,
    queues: Sequence[str] | None = None,
    limit: int = 1_000,
    until: Until = "due",
    raise_errors: bool = False,
    skip_waiting: bool = False,
    within: Duration = 30,
    concurrency: int = 1,
) -> Drained:
    """`drain`, for asyncio: ``async def`` handlers run on this event loop."""
    if until not in ("due", "empty"):
        raise ConfigurationError(f'until is {until!r}: give "due" or "empty".')
    if "session" in vars(app.database):
        raise ConfigurationError(
            "Jobs run inline here, so that there is nothing to drain.",
            remedy="Leave the block of inline(…) first.",
        )
    seconds = to_timedelta(within, name="within").total_seconds()
    worker = _DrainWorker(app, queues=queues, concurrency=concurrency)
    course = _Course(
        worker=worker,
        database=app.database,
        until=until,
        limit=limit,
        raise_errors=raise_errors,
        skip_waiting=skip_waiting,
        within=seconds,
        deadline=time.monotonic() + seconds,
    )
    async with worker:
        try:
            await course.follow()
        except BaseException:
            worker.hurry()
            raise
    return Drained(tuple(worker.outcomes), worker.lost)


class _DrainWorker(EmbeddedWorker):
    """A worker that keeps no schedules and no house, looks often, and notes every outcome."""

    def __init__(self, app: App, *, queues: Sequence[str] | None, concurrency: int) -> None:
        self.outcomes: list[AttemptOutcome] = []
        self._notes = Notes()
        super().__init__(
            WatchedApp(app, self._notes),
            queues=queues,
            schedules=False,
            upkeep=False,
            concurrency=concurrency,
            poll="10 ms",
            stop_grace="2 s",
        )

    def _make_board(self, slots: SlotTable) -> Board:
        return WatchedBoard(slots, self._notes, self.outcomes.append)

    @property
    def board(self) -> WatchedBoard:
        assert self._engine is not None
        assert isinstance(self._engine.board, WatchedBoard)
        return self._engine.board

    @property
    def lost(self) -> int:
        return self.board.counts.lost

    def look_now(self, *, afresh: bool = False) -> None:
        """Look for jobs without waiting; ``afresh``: `idle` then counts only looks that begin from now on."""
        assert self._engine is not None
        self._engine.look_now(afresh=afresh)

    def hurry(self) -> None:
        """Interrupt at the stop what still runs, instead of waiting for it."""
        assert self._engine is not None
        self._engine.stop()
        self._engine.stop()

    def check(self) -> None:
        """Raise what ended the engine, should it ever."""
        assert self._running is not None
        if self._running.done():
            self._running.result()


@dataclass(slots=True)
class _Course:
    """One drain, from round to round."""

    worker: _DrainWorker
    database: Database
    until: Until
    limit: int
    raise_errors: bool
    skip_waiting: bool
    within: float
    deadline: float
    seen: int = 0

    async def follow(self) -> None:
        while True:
            live = await self._at_rest()
            if any(seconds <= 0 for *_, seconds in live):
                await self._pause(_LOOK)
            elif self.skip_waiting and any(row[2] == "pending" for row in live):
                await self._run(_skip_waiting(self.worker.queues))
            elif live and self.until == "empty":
                await self._pause(_LOOK)
            else:
                return

    async def _at_rest(self) -> Rows:
        """What waits, and what others run, at a moment when this engine had nothing to do."""
        while True:
            await self._until_idle()
            ended = len(self.worker.outcomes)
            live: Rows = await self._run(_find_live(self.worker.queues))
            await self._until_idle()  # it may have claimed what we saw
            if len(self.worker.outcomes) == ended:
                return live

    async def _until_idle(self) -> None:
        """Until a look that begins from now on finds nothing to do."""
        self.worker.look_now(afresh=True)
        while not self.worker.idle:
            await self._pause(_LOOK)
            if self.worker.board.empty:
                self.worker.look_now()

    async def _pause(self, seconds: float) -> None:
        """Wait, then look whether the drain is to end."""
        await asyncio.sleep(seconds)
        self.worker.check()
        outcomes = self.worker.outcomes
        if self.raise_errors:
            while self.seen < len(outcomes):
                self.seen += 1
                raise_first(outcomes[self.seen - 1])
        if len(outcomes) > self.limit:
            raise DrainIncomplete(
                await self._incomplete(f"{len(outcomes)} attempts have run (limit={self.limit})")
            )
        if time.monotonic() >= self.deadline:
            raise DrainIncomplete(await self._incomplete(f"the time is over (within={self.within:g} s)"))

    async def _incomplete(self, why: str) -> str:
        board = self.worker.board
        running = [_running(held.job, held.started) for held in board.running.values()]
        mine = {held.job.id for held in board.running.values()}
        others = [
            _waiting(row) for row in await self._run(_find_live(self.worker.queues)) if row[0] not in mine
        ]
        lines = [f"The drain is not complete: {why}."]
        lines += ["Still running:", *_listed(running)] if running else ["Nothing runs."]
        lines += ["Left to do:", *_listed(others)] if others else []
        if self.worker.outcomes:
            lines += ["The last attempt:", f"  {self.worker.outcomes[-1].describe()}"]
        return "\n".join(lines)

    async def _run(self, operation: Operation[Any]) -> Any:
        async with self.database.async_session() as session:
            return await run_async(operation, session)


def _find_live(queues: Sequence[str] | None) -> Operation[Rows]:
    listed = None if queues is None else list(queues)

    def steps() -> Steps[Rows]:
        return (yield Statement("testing/find_live", {"queues": listed, "limit": 1_000}))

    return Operation("find_live", steps, alone=True)


def _skip_waiting(queues: Sequence[str] | None) -> Operation[None]:
    listed = None if queues is None else list(queues)

    def steps() -> Steps[None]:
        yield Statement("testing/skip_waiting", {"queues": listed})

    return Operation("skip_waiting", steps, alone=True)


def _running(job: ClaimedJob, started: float | None) -> str:
    since = "" if started is None else f", for {time.monotonic() - started:.1f} s"
    return f"job {job.id} {job.kind}, attempt {job.attempt} of {job.max_attempts}{since}"


def _waiting(row: Sequence[Any]) -> str:
    id_, kind, status, attempts, seconds = row
    if status == "running":
        return f"job {id_} {kind}, claimed, its lease ends in {seconds:.0f} s"
    due = "due" if seconds <= 0 else f"due in {seconds:.0f} s"
    return f"job {id_} {kind}, {due}, {attempts} attempts so far"


def _listed(lines: Sequence[str]) -> list[str]:
    shown = [f"  {line}" for line in lines[:_SHOWN]]
    return [*shown, f"  … and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else shown
