"""One child's work: it claims, runs and settles, on one event loop. The same engine runs embedded in an application."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from semel.core.settings import Settings
from semel.errors import SemelError
from semel.queue.app import App
from semel.queue.worker.attempts import Attempts
from semel.queue.worker.board import Board, Ending
from semel.queue.worker.claiming import Claiming, Take
from semel.queue.worker.lanes import Lanes
from semel.queue.worker.links import Connect, Link
from semel.queue.worker.settling import Settling
from semel.queue.worker.slots import SlotTable
from semel.queue.worker.starter import Starter
from semel.queue.worker.sweeping import Sweeping
from semel.queue.worker.tasks import end_tasks
from semel.store.jobs import installation
from semel.store.sleep import Serves

logger = logging.getLogger("semel.worker")

MakeStarter = Callable[[App, Settings, Board, UUID, str | None], Starter]
"""Makes what starts the claimed jobs, once the database has said which installation it is."""

SLOTS = 4096
"""Claims that one child can hold: running, prefetched, and ended but not yet written."""

_CANCEL_SHARE = 0.8
"""Of the grace at a stop: handlers have so much to end by themselves before they are cancelled."""

_STALE = 10.0
"""Seconds that a claim waits for its turn before it goes back, so that another worker may take it."""

_STALE_ALONE = 2.0
"""The same for a job that must run alone: while it waits, its child starts nothing else."""


class Engine:
    """Built from an application; `run` until stopped."""

    def __init__(
        self,
        app: App,
        settings: Settings,
        slots: SlotTable,
        connect: Connect,
        *,
        serves: Serves,
        takes: Sequence[Take] | None = None,
        location: str | None = None,
        make_board: Callable[[SlotTable], Board] = Board,
        make_starter: MakeStarter = Attempts,
    ) -> None:
        self.app = app
        self.settings = settings
        self.board = make_board(slots)
        self._claim_link = Link(connect, "claiming", self._connection_lost)
        self._settle_link = Link(connect, "settling", self._connection_lost)
        self._sweep_link = Link(connect, "sweeping")
        self._lanes = Lanes(serves)
        self._takes = takes
        self._serves = serves
        self._location = location
        self._make_starter = make_starter
        self.started = asyncio.Event()
        """Set once it works: the database has answered, and the loops run."""
        self._stopping: asyncio.Event = asyncio.Event()
        self._hurry: asyncio.Event = asyncio.Event()
        self._grace = settings.stop_grace.total_seconds()
        self._claiming: Claiming | None = None
        self._attempts: Starter | None = None

    @property
    def idle(self) -> bool:
        """Whether the last look found nothing to do, and nothing runs."""
        return self._claiming is not None and self._claiming.idle.is_set() and self.board.empty

    @property
    def stopping(self) -> bool:
        """Whether it was told to stop."""
        return self._stopping.is_set()

    def look_now(self, *, afresh: bool = False) -> None:
        """Look for jobs without waiting for the next poll; see `Claiming.look_now`."""
        if self._claiming is not None:
            self._claiming.look_now(afresh=afresh)

    def stop(self, grace: float | None = None) -> None:
        """End in stages: claim nothing more and give back what waits, let handlers end, cancel them. Twice: hurry."""
        if self._stopping.is_set():
            self._hurry.set()
            return
        if grace is not None:
            self._grace = grace
        self._stopping.set()

    async def run(self) -> bool:
        """Work until stopped; answers whether every attempt came to its end (if not, its thread still runs)."""
        name, _ = await self._settle_link.insist(installation())
        attempts = self._make_starter(self.app, self.settings, self.board, name, self._location)
        sweeping = Sweeping(self._lanes, self._settle_link, self._sweep_link) if self._takes is None else None
        claiming = Claiming(
            self._claim_link,
            self.board,
            attempts,
            self.settings,
            self._takes or (self._lanes.take,),
            self._serves,
            sweeping,
        )
        settling = Settling(
            self._settle_link, self.board, attempts, self.settings, claiming.look_in, claiming.look_if_empty
        )
        self._attempts, self._claiming = attempts, claiming
        loops = [
            asyncio.create_task(_forever("claiming", claiming.run)),
            asyncio.create_task(_forever("settling", settling.run)),
            asyncio.create_task(_forever("watching", lambda: self._watch(attempts, settling))),
        ]
        if sweeping is not None:
            loops.append(asyncio.create_task(_forever("sweeping", sweeping.run)))
        self.started.set()
        try:
            await self._stopping.wait()
            complete = await self._wind_down(attempts, claiming, settling, loops)
        finally:
            await end_tasks(loops)
            await attempts.close()
            await self._claim_link.close()
            await self._settle_link.close()
            await self._sweep_link.close()
        return complete

    async def _wind_down(
        self,
        attempts: Starter,
        claiming: Claiming,
        settling: Settling,
        loops: Sequence[asyncio.Task[None]],
    ) -> bool:
        began = time.monotonic()
        logger.info("stopping: %s running, %s waiting", len(self.board.running), len(self.board.waiting))
        claiming.stop()
        attempts.stopping = True
        self._give_back_waiting()
        await self._until_empty(began + self._grace * _CANCEL_SHARE, hurried=True)
        for held in list(self.board.running.values()):
            attempts.interrupt(held, "stop")
        await self._until_empty(began + self._grace * 0.9, hurried=False)
        # A claim that was under way is answered and given back first; then nothing adds to the endings any more.
        claims, settlements = loops[:2]
        await _within(claims, began + self._grace * 0.95)
        settling.stop()
        await _within(settlements, began + self._grace * 0.99)
        return not self.board.running

    async def _until_empty(self, deadline: float, *, hurried: bool) -> None:
        """Until nothing runs, the deadline has passed, or (where it counts) somebody hurries."""
        while self.board.running and time.monotonic() < deadline:
            if hurried and self._hurry.is_set():
                return
            self.board.changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(0.05, max(0.0, deadline - time.monotonic()))):
                    await self.board.changed.wait()

    def _give_back_waiting(self) -> None:
        for queue in (self.board.waiting, self.board.alone):
            while queue:
                self.board.end(Ending(queue.popleft(), None, give_back=True))

    async def _watch(self, attempts: Starter, settling: Settling) -> None:
        """Tell handlers of lost claims, give back what has waited too long, store progress."""
        period = min(self.settings.lease.total_seconds() / 10, 1.0)
        while True:
            await asyncio.sleep(period)
            for held in list(self.board.running.values()):
                if not held.lost and self.board.slots.is_lost(held.slot, held.job.claim):
                    attempts.interrupt(held, "lost")
                elif held.task is not None and held.task.done():
                    attempts.interrupt(held, "stop")  # somebody cancelled it before its first step
            self._give_back_stale()
            if self._claiming is not None:
                self._claiming.look_if_empty()
            with contextlib.suppress(SemelError):
                await settling.store_progress()

    def _give_back_stale(self) -> None:
        if self.board.relayed:
            return
        now, lease = time.monotonic(), self.settings.lease.total_seconds()
        for queue, patience in ((self.board.waiting, _STALE), (self.board.alone, _STALE_ALONE)):
            while queue and queue[0].since < now - min(patience, lease / 2):
                self.board.end(Ending(queue.popleft(), None, give_back=True))

    def _connection_lost(self) -> None:
        if self._claiming is not None:
            self._claiming.new_worker()


def serves_for(app: App, queues: Sequence[str] | None) -> Serves:
    """What a worker of ``app`` serves: these queues, or every one but those that are left to a relay."""
    left = app.relayed
    for queue in sorted(left.intersection(queues or ())):
        logger.warning("the queue %s is left to a relay: this worker does not serve it", queue)
    return Serves(None if queues is None else tuple(queues), left)


async def _within(task: asyncio.Task[None], deadline: float) -> None:
    """Wait for a loop's end, until the deadline at most."""
    await asyncio.wait([task], timeout=max(0.05, deadline - time.monotonic()))


async def _forever(name: str, body: Callable[[], Awaitable[None]]) -> None:
    """Run a loop to its end, and again after an error that it did not expect: no error ends a worker."""
    while True:
        try:
            await body()
            return
        except Exception:
            logger.exception("%s: an error; starting again", name)
            await asyncio.sleep(0.2)
