"""Keeps a number of children running: starts them, attends them to their end, and starts the next."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from datetime import timedelta
from typing import Any

from semel.queue.worker.child import ChildOptions
from semel.queue.worker.children import COMMAND, Child
from semel.queue.worker.leases import overdue
from semel.queue.worker.messages import Broken, Hello
from semel.queue.worker.slots import SlotTable

logger = logging.getLogger("semel.worker")

_SHORT_LIFE = 5.0
_LONGEST_PAUSE = 30.0

Bury = Callable[[Child, bool], Coroutine[Any, Any, None]]
"""Settles what a dead child held; the flag says that its end was wanted."""


class Nursery:
    """The children of one supervisor. ``bury`` runs in the background after each end."""

    def __init__(
        self, options: ChildOptions, grace: timedelta, bury: Bury, command: Sequence[str] = COMMAND
    ) -> None:
        self.options = options
        self.grace = grace
        self.children: set[Child] = set()
        self.stopping = asyncio.Event()
        self.hurried = 0
        self._bury = bury
        self._command = tuple(command)
        self._short_lives = 0
        self._burials: set[asyncio.Task[None]] = set()

    @property
    def tables(self) -> Iterator[SlotTable]:
        """What the living children hold."""
        return (child.slots for child in self.children)

    async def keep(self, child: Child | None) -> None:
        """Keep one place filled until `stop`: with ``child`` first, which has said hello already."""
        while child is not None or not self.stopping.is_set():
            if child is None:
                child = await self._start()
            if child is not None:
                await self._attend(child)
                child = None
            if not self.stopping.is_set():
                await self._pause()

    async def stop(self) -> None:
        """Tell every child to stop; kill those that are there after the grace, or at the third signal."""
        deadline = time.monotonic() + self.grace.total_seconds()
        self.stopping.set()
        for child in self.children:
            child.stop(self.grace.total_seconds())
        while self.children and time.monotonic() < deadline and self.hurried < 2:
            await asyncio.sleep(0.02)
        for child in list(self.children):
            logger.warning("child %s did not end within the grace: killed", child.process.pid)
            child.kill()

    def hurry(self) -> None:
        """Let the children cancel what runs at once; the second time, they are killed."""
        self.hurried += 1
        for child in self.children:
            child.stop(self.grace.total_seconds())

    async def buried(self, limit: float) -> None:
        """Wait until what dead children held is settled, so long at most."""
        if self._burials:
            await asyncio.wait(self._burials, timeout=limit)

    async def end_overdue(self, grace: timedelta) -> None:
        """Kill a child whose handler has ignored its time-out and the grace after it."""
        while True:
            await asyncio.sleep(min(0.5, max(0.02, grace.total_seconds() / 5)))
            for child in list(self.children):
                late = overdue([child.slots], grace)
                if late:
                    child.blamed |= {(claimed.slot.job_id, claimed.slot.claim) for claimed in late}
                    jobs = ", ".join(str(claimed.slot.job_id) for claimed in late)
                    logger.error("child %s is killed: job %s ignores its time-out", child.process.pid, jobs)
                    child.kill()

    async def _start(self) -> Child | None:
        """A child that has said hello. None where it could not be made or did not: to be tried again."""
        child = None
        try:
            child = await Child.start(self.options, self._command)
            self.children.add(child)
            hello = await child.hello()
            if isinstance(hello, Hello):
                return child
            reason = hello.message if isinstance(hello, Broken) else "it died"
        except Exception as error:  # no process, descriptor or memory to be had: there may be later
            reason = f"{type(error).__name__}: {error}"
        if not self.stopping.is_set():
            logger.error("a child cannot start: %s", reason)
        if child is not None:
            self.children.discard(child)
            await child.discard()
        self._short_lives += 1
        return None

    async def _attend(self, child: Child) -> None:
        self.children.add(child)
        child.go()
        if self.stopping.is_set():
            child.stop(self.grace.total_seconds())
        listening = asyncio.create_task(child.listen())
        code = await child.process.wait()
        listening.cancel()
        self.children.discard(child)
        wanted = self.stopping.is_set() or code == 0
        level = logging.INFO if wanted else logging.ERROR
        logger.log(level, "child %s ended with code %s", child.process.pid, code)
        lived = time.monotonic() - child.born
        self._short_lives = 0 if lived > _SHORT_LIFE or code == 0 else self._short_lives + 1
        burial = asyncio.create_task(self._bury(child, wanted))
        self._burials.add(burial)
        burial.add_done_callback(self._burials.discard)

    async def _pause(self) -> None:
        """Children that die young are started ever more slowly."""
        if self._short_lives > 1:
            pause = min(0.1 * 2 ** min(self._short_lives, 20), _LONGEST_PAUSE)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self.stopping.wait()
