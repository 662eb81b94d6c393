"""How an idle child waits: it hears of new jobs where it can, and looks by itself now and then in any case."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import secrets
import time
from datetime import timedelta
from typing import Final

from semel.core.settings import Settings
from semel.queue.worker.links import Link
from semel.store.drivers.psycopg3 import AsyncPsycopgSession
from semel.store.run import run_async
from semel.store.sleep import Ear, Serves, fall_asleep, is_allowed, look_ahead, wake_up

_FIRST_LOOK: Final = 0.02
"""Seconds until an idle child looks again, while transactions are open that may not have seen that it sleeps."""

_LONGEST_LOOK: Final = 1.0
_MARGIN: Final = 0.25
"""Seconds that a question may take for its answer to count; twice the last one's, where that took longer."""

_AGAIN: Final = 0.005
"""Seconds until a child looks again for a job that is due and that it did not get: somebody has it in hand."""

_LOOKS_LIMIT: Final = 30.0
_VALID: Final = timedelta(minutes=5)
_REFRESH: Final = 120.0
_KNOWN: Final = 3
"""Polls for which it is known when the next job is due: of what is stored meanwhile and is due sooner, a sleeper hears."""

_REACH: Final = 1.5 * (_KNOWN + 1)
"""Polls ahead that a sleeper looks and hears, more than lie between two looks ahead."""

_BUSY: Final = 1.0
"""Seconds of unbroken work after which nobody needs to wake this child."""


class Sleeping:
    """Waits for work over the claiming loop's connection, between its statements."""

    def __init__(self, link: Link, serves: Serves, settings: Settings) -> None:
        self.link = link
        self.serves = serves
        self.poll = settings.poll
        lease = settings.lease / 6  # a lease that ended is seen by looking, not heard of
        self.quiet_poll = max(settings.poll, min(settings.quiet_poll, lease))
        self.heard = asyncio.Event()
        """Set by whatever is a reason to look."""
        self._number = secrets.randbits(62)
        self._ear: Ear | None = None
        self._session: AsyncPsycopgSession | None = None
        self._noted: float | None = None
        self._settled: int | None = None
        self._told = False
        self._known_until = 0.0
        self._due: float | None = None
        self._took = 0.0
        self._looks_until = 0.0
        self._look = _FIRST_LOOK
        self._busy_since: float | None = None

    async def work(self) -> None:
        """Work was found."""
        now = time.monotonic()
        self._known_until = now
        if self._busy_since is None:
            self._busy_since = now
        elif self._noted is not None and now - self._busy_since > _BUSY:
            self._noted = None
            await self.link.run(wake_up(self._number))

    async def rest(self, looked: float) -> None:
        """Nothing was found by the look that began at ``looked``: return when it is time to look again."""
        self._busy_since = None
        async with self.link.session() as session:
            if session is not self._session:
                await self._meet(session)
            if self._ear is None:
                await self._wait(self.poll.total_seconds() * _spread())
            elif not await self._note(session):
                await self._wait_with(self._ear, await self._until_next(session, looked))

    async def _meet(self, session: AsyncPsycopgSession) -> None:
        """A new connection: nobody knows of it, and the note may be gone with the server's memory."""
        self._session, self._ear, self._noted, self._known_until = session, None, None, 0.0
        ear = Ear(session, self._hear)
        if await ear.open():
            self._ear = ear

    async def _note(self, session: AsyncPsycopgSession) -> bool:
        """Note that this child sleeps; answers whether that is news, so that it has to look once more."""
        now = time.monotonic()
        if self._noted is not None and now < self._noted + _REFRESH:
            return False
        new = self._noted is None
        note = fall_asleep(self._number, self.serves, reach=self.quiet_poll * _REACH, valid=_VALID)
        if not await is_allowed(note, session):
            self._ear = None
            return True
        self._noted = now
        if new:
            self._settled, self._look, self._looks_until = None, _FIRST_LOOK, now + _LOOKS_LIMIT
        return new

    async def _until_next(self, session: AsyncPsycopgSession, looked: float) -> float:
        """Seconds to wait: to the next poll or the next due job, or less while old transactions are open."""
        wait = self.quiet_poll.total_seconds() * _spread()
        if self._told or time.monotonic() >= self._known_until:
            wait = min(wait, await self._look_ahead(session, looked))
        if self._due is None:
            return wait
        due_in = self._due - time.monotonic()
        return min(wait, due_in if due_in > 0 else min(-due_in, _AGAIN))

    async def _look_ahead(self, session: AsyncPsycopgSession, looked: float) -> float:
        """Ask when the next job is due, and how long that is known; answers the most to wait for old transactions.

        What became due since that look, which did not see it, is the next one. An answer that took too long says nothing.
        """
        self._told, now = False, time.monotonic()
        margin = max(_MARGIN, 2 * self._took)
        missed = timedelta(seconds=now - looked + margin)
        ahead = await run_async(
            look_ahead(self.serves, reach=self.quiet_poll * _REACH, missed=missed), session
        )
        self._took = time.monotonic() - now
        if self._took > margin:
            self._due, self._known_until = None, now
            return 0.0
        self._due = None if ahead.due_in is None else now + ahead.due_in
        if self._settled is None:
            self._settled = ahead.next
        settled = ahead.oldest >= self._settled
        known = now + (_KNOWN * self.quiet_poll.total_seconds() if settled else 0.0)
        self._known_until = known if self._due is None else min(known, self._due)
        if settled or now >= self._looks_until:
            return math.inf
        look, self._look = self._look, min(2 * self._look, _LONGEST_LOOK)
        return look

    async def _wait_with(self, ear: Ear, seconds: float) -> None:
        with ear.listening(self.heard.set):
            await self._wait(seconds)

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.heard.wait()

    def _hear(self, queue: str) -> None:
        if self.serves.includes(queue):
            self._told = True
            self.heard.set()


def _spread() -> float:
    return random.uniform(0.9, 1.1)  # noqa: S311 - spreads the polls
