"""One connection to a broker, made again whenever it ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable
from typing import Final

from semel.errors import BrokerUnreachable
from semel.queue.worker.tasks import end_tasks
from semel.relay.figures import Figures
from semel.relay.target import Sender, Target

logger = logging.getLogger("semel.relay")

_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 10.0
_OPEN_LIMIT: Final = 30.0
_CLOSE_LIMIT: Final = 5.0


class Connecting:
    """Keeps ``sender`` open; None while there is none. ``opened`` follows each, ``ended`` one that ended by itself."""

    def __init__(
        self,
        target: Target,
        figures: Figures,
        opened: Callable[[], None],
        ended: Callable[[Sender, Exception], None],
    ) -> None:
        self.sender: Sender | None = None
        self._target = target
        self._figures = figures
        self._opened = opened
        self._ended = ended
        self._given_up = asyncio.Event()
        self.wait = _FIRST_WAIT
        """Seconds until the next one is tried, at most."""
        self._tries = 0
        self._task = asyncio.create_task(self._keep())

    def give_up(self, sender: Sender, why: str) -> None:
        """This connection is of no use any more."""
        if sender is self.sender:
            self.sender = None
            self._given_up.set()
            self._failed(f"the connection ended: {why}")

    def works(self) -> None:
        """A message was confirmed: a connection that ends later is made again at once."""
        self.wait, self._tries = _FIRST_WAIT, 0

    async def close(self) -> None:
        await end_tasks([self._task])

    async def _keep(self) -> None:
        while True:
            sender = await self._open()
            if sender is not None:
                try:
                    await self._until_lost(sender)
                finally:
                    self.sender = None
                    await self._close(sender)
            await asyncio.sleep(self.wait * random.uniform(0.5, 1.0))  # noqa: S311 - spreads reconnections
            self.wait = min(self.wait * 2, _LONGEST_WAIT)

    async def _open(self) -> Sender | None:
        try:
            async with asyncio.timeout(_OPEN_LIMIT):
                return await self._target.open()
        except Exception as error:  # whatever a client raises: it is tried again
            self._failed(f"cannot be reached: {said(error)}")
            return None

    async def _until_lost(self, sender: Sender) -> None:
        self._given_up.clear()
        self.sender = sender
        self._figures.connections += 1
        logger.info("%s: connected", self._target)
        self._opened()
        waits = [asyncio.create_task(event.wait()) for event in (self._given_up, sender.lost)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end_tasks(waits)
        if not self._given_up.is_set():
            self._ended(sender, BrokerUnreachable("The broker ended the connection."))

    async def _close(self, sender: Sender) -> None:
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_CLOSE_LIMIT):
                await sender.close()

    def _failed(self, why: str) -> None:
        self._tries += 1
        if self._tries in (1, 10, 100):
            logger.warning("%s %s; trying again", self._target, why)


def said(error: BaseException) -> str:
    """What an error says; its type, where it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__
