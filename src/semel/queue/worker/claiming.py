"""The loop that claims: as many jobs as can start at once, and a few more where they run fast."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from semel.core.settings import Settings
from semel.errors import DatabaseUnreachable, RetryTransaction
from semel.queue.worker.board import Board, Ending
from semel.queue.worker.links import Link
from semel.queue.worker.outcomes import log_ended_by_claim
from semel.queue.worker.sleeping import Sleeping
from semel.queue.worker.starter import Starter
from semel.queue.worker.sweeping import Sweeping
from semel.store.jobs import Claims
from semel.store.sleep import Serves
from semel.store.statement import Operation

logger = logging.getLogger("semel.worker")

_AHEAD = 0.1
"""Seconds of work that are claimed ahead, by the run time measured so far."""

_MOST_BYTES = 16 * 1024 * 1024
"""Of payloads in one claim, by the size seen so far."""

_PAUSE = 0.005
"""Seconds until the next look, where the last one found less than there was room for."""

_FIRST_WAIT = 0.05
_LONGEST_WAIT = 5.0

_NOTHING = Claims((), ())

Take = Callable[[int, int, Settings], Operation[Claims] | None]
"""A claim to run: for this worker number, so many at most, with the settings' lease. None: there is nothing to ask."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at the database came to."""

    began: float
    count: int
    """Jobs it took."""
    more: bool
    """There may be more due."""
    conclusive: bool
    """Had it taken none, nothing was due."""


class Claiming:
    """Claims until it is told to stop. ``idle`` is set while the last look found nothing to do."""

    def __init__(
        self,
        link: Link,
        board: Board,
        attempts: Starter,
        settings: Settings,
        takes: Sequence[Take],
        serves: Serves,
        sweeping: Sweeping | None = None,
    ) -> None:
        self.link = link
        self.board = board
        self.attempts = attempts
        self.settings = settings
        self.takes = takes
        self.worker = draw_worker()
        self.stopping = False
        self.idle = asyncio.Event()
        self._sleeping = Sleeping(link, serves, settings)
        self._wake = self._sleeping.heard
        self._sweeping = sweeping
        self._unswept_since = 0.0
        self._wait = _FIRST_WAIT
        self._asked = 0
        self._careful = False
        self._payload_size = 1_000.0

    async def run(self) -> None:
        """Claim, start, wait for room or for the next look; a lost database makes it wait and try again."""
        while not self.stopping:
            wanted = self._wanted()
            if wanted < 1:
                self.idle.clear()
                await self._room()
                continue
            self._wake.clear()
            try:
                await self._look(wanted)
            except (DatabaseUnreachable, RetryTransaction) as error:
                await self._recover(error)
                continue
            self._wait = _FIRST_WAIT

    def stop(self) -> None:
        """Claim nothing more; a claim that is under way is answered first, and given back."""
        self.stopping = True
        self._wake.set()
        self.board.changed.set()

    def look_now(self, *, afresh: bool = False) -> None:
        """Look without waiting for the next poll; ``afresh``: `idle` then counts only looks that begin from now on."""
        if afresh:
            self._asked += 1
            self._unswept_since = time.monotonic()
            self.idle.clear()
        self._wake.set()

    def look_if_empty(self) -> None:
        """Look once more where nothing is held any more: only then does a look that finds nothing mean `idle`."""
        if self.board.empty and not self.idle.is_set():
            self._wake.set()

    def look_in(self, seconds: float) -> None:
        """Look again after so long, where that is sooner than the next poll: a retry of this child's is due then."""
        if seconds < self.settings.poll.total_seconds():
            asyncio.get_running_loop().call_later(seconds, self._wake.set)

    def new_worker(self) -> None:
        """A claim that was lost with a connection may come back with the same number: never under this worker's."""
        self.worker = draw_worker()

    def _wanted(self) -> int:
        board = self.board
        if board.alone or self.attempts.alone is not None or self.attempts.paused:
            return 0
        free = self.attempts.concurrency - len(board.running)
        if self._careful:
            return min(1, free, board.slots.room)
        ahead = self._ahead(free)
        waiting = len(board.waiting)
        if waiting > ahead // 2 and waiting >= free:
            return 0
        return min(free + ahead - waiting, board.slots.room, max(1, int(_MOST_BYTES / self._payload_size)))

    def _ahead(self, free: int) -> int:
        """How many to claim beyond those that start at once; none behind jobs that turn out to take long."""
        run_time = self.board.run_time
        if not run_time:
            return 0
        if free < 1:
            newest = next(reversed(self.board.running.values()))
            run_time = max(run_time, time.monotonic() - (newest.started or 0.0))
        return int(min(self.settings.prefetch, self.attempts.concurrency * _AHEAD / run_time))

    async def _look(self, wanted: int) -> None:
        """Claim; where that was all, wait a moment for more; where there was nothing, until there is a reason to look."""
        look = await self._claim(wanted)
        if look.count:
            await self._work()
            if not look.more and not self.stopping:
                await asyncio.sleep(_PAUSE)
        elif self._sweeping is not None and not look.conclusive:
            await self._sweeping.hurry(_PAUSE)
        elif not self.stopping:
            await self._sleeping.rest(look.began)
            self._unswept_since = time.monotonic()

    async def _work(self) -> None:
        await self._sleeping.work()
        if self._sweeping is not None:
            self._sweeping.work()
            self._unswept_since = time.monotonic()

    async def _claim(self, wanted: int) -> Look:
        """Run each claim once, while there is room."""
        asked, began = self._asked, time.monotonic()
        quiet = self.board.empty  # else a job that is settled meanwhile may be due again, unseen by this look
        conclusive = self._sweeping is None or self._sweeping.covers(self._unswept_since, began)
        count, more = 0, False
        for take in self.takes:
            if count < wanted and not self.stopping:
                found = await self._take(take, wanted - count)
                count += len(found.taken) + len(found.ended)
                more = more or found.more
        if count:
            self.idle.clear()
        elif quiet and self.board.empty and asked == self._asked and conclusive:
            self.idle.set()
        return Look(began, count, more, conclusive)

    async def _take(self, take: Take, wanted: int) -> Claims:
        """Run one claim, again while others are busy, and hold what it took."""
        while (operation := take(self.worker, wanted, self.settings)) is not None and not self.stopping:
            claimed = time.monotonic()
            found = await self.link.run(operation)
            if not found.busy:
                self._hold(found, claimed)
                return found
        return _NOTHING

    def _hold(self, found: Claims, claimed: float) -> None:
        for job in found.ended:
            log_ended_by_claim(job, self.board.counts)
        taken = [self.board.hold(job, claimed) for job in found.taken]
        if taken:
            size = sum(len(job.payload) for job in found.taken) / len(taken)
            self._payload_size = max(1.0, 0.5 * self._payload_size + 0.5 * size)
        if self.stopping:
            for held in taken:
                self._forget(held)
            return
        self._keep_one_alone()
        self.attempts.start_waiting()

    def _keep_one_alone(self) -> None:
        """Of jobs with crashes on their count hold one at a time, and claim one at a time while there are any.

        If it takes the whole worker with it, supervisor and all, the others are not here to be counted as crashed.
        """
        alone = self.board.alone
        self._careful = bool(alone)
        while len(alone) > 1:
            self.board.end(Ending(alone.pop(), None, give_back=True, at_once=True))

    def _forget(self, held: object) -> None:
        for queue in (self.board.waiting, self.board.alone):
            for each in list(queue):
                if each is held:
                    queue.remove(each)
                    self.board.end(Ending(each, None, give_back=True))

    async def _room(self) -> None:
        self.board.changed.clear()
        if self._wanted() < 1 and not self.stopping:
            await self.board.changed.wait()

    async def _recover(self, error: Exception) -> None:
        logger.warning("claiming: %s; trying again in about %.2g s", error, self._wait)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._wait * random.uniform(0.5, 1.0)):  # noqa: S311 - spreads reconnections
                await self._wake.wait()
        self._wait = min(self._wait * 2, _LONGEST_WAIT)


def draw_worker() -> int:
    """A worker number: random, so that no two children ever share one, nor one child before and after a lost connection."""
    return secrets.randbits(62)
