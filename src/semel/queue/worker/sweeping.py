"""The loop that sweeps: it looks from the beginning of every lane while there is work, and tells `Lanes` what it saw."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import Final

from semel.errors import SemelError
from semel.queue.worker.lanes import Lanes
from semel.queue.worker.links import Link
from semel.store.marks import sweep

logger = logging.getLogger("semel.worker")

_SHARE: Final = 0.2
"""Of the time may be spent on sweeps, as long as one comes each `_LONGEST` seconds."""

_SHORTEST: Final = 0.02
_WORKING: Final = 0.25
_LONGEST: Final = 5.0


class Sweeping:
    """Sweeps while the child works. Short sweeps share a connection; long ones, which would be in the way, have their own."""

    def __init__(self, lanes: Lanes, shared: Link, own: Link) -> None:
        self.lanes = lanes
        self._shared = shared
        self._own = own
        self._wanted = asyncio.Event()
        self._urgent = asyncio.Event()
        self._ended = asyncio.Event()
        self._began = 0.0
        self._known = 0.0

    def work(self) -> None:
        """Something was claimed: sweep, not too often."""
        self._wanted.set()

    def covers(self, since: float, until: float) -> bool:
        """Whether a claim that begins at ``until`` sees all that was due at ``since`` (both of `time.monotonic`).

        From the beginning of the lanes it does; from marks where a sweep began after the one and ended before the other.
        """
        if not self.lanes.marked:
            return True
        return since < self._began and self._known < until

    async def hurry(self, seconds: float) -> None:
        """Sweep as soon as may be; return when it has ended, or after so long."""
        self._ended.clear()
        self._wanted.set()
        self._urgent.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()

    async def run(self) -> None:
        """Sweep whenever that is wanted, and rest between.

        Once it is known how long a sweep takes, none comes between the first jobs after idleness and their ends.
        """
        while True:
            if not self._wanted.is_set():
                await self._wanted.wait()
                if self._known and not self.lanes.marked and not self.lanes.undecided:
                    await self._unless_urgent(_WORKING)
            self._wanted.clear()
            self._urgent.clear()
            await self._rest(await self._sweep())

    async def _sweep(self) -> float:
        began = time.monotonic()
        link = self._own if self.lanes.marked else self._shared
        try:
            swept = await link.run(sweep(self.lanes.serves))
        except SemelError as error:
            logger.debug("sweeping: %s", error)
            return _LONGEST * _SHARE
        self.lanes.learn(swept)
        self._began, self._known = began, time.monotonic()
        self._ended.set()
        return swept.seconds

    async def _rest(self, seconds: float) -> None:
        """So long that sweeps keep to their share; a little longer where nobody waits for the next."""
        pause = min(max(seconds * (1 / _SHARE - 1), _SHORTEST), _LONGEST)
        await asyncio.sleep(pause)
        if pause < _WORKING and not self.lanes.undecided:
            await self._unless_urgent(_WORKING - pause)

    async def _unless_urgent(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._urgent.wait()
