"""A connection that comes back: each loop of the worker has one, and restarts itself when the database is away."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from semel.errors import DatabaseUnreachable, RetryTransaction
from semel.store.drivers.psycopg3 import AsyncPsycopgSession
from semel.store.faults import LockBusy
from semel.store.run import run_async
from semel.store.statement import Operation

Answer = TypeVar("Answer")
Connect = Callable[[], Awaitable[AsyncPsycopgSession]]
logger = logging.getLogger("semel.worker")

_FIRST_WAIT = 0.05
_LONGEST_WAIT = 5.0


class Link:
    """One connection of a worker's loop, opened when first used and again after each loss.

    ``lost`` is called after each loss, before the next connection.
    """

    def __init__(self, connect: Connect, name: str, lost: Callable[[], None] | None = None) -> None:
        self._connect = connect
        self._session: AsyncPsycopgSession | None = None
        self._lock = asyncio.Lock()
        self._lost = lost
        self.name = name
        self.losses = 0

    @asynccontextmanager
    async def session(self) -> AsyncIterator[AsyncPsycopgSession]:
        """The session, for one user at a time. Any failure inside that broke the connection drops it."""
        async with self._lock:
            if self._session is None:
                self._session = await self._connect()
            session = self._session
            try:
                yield session
            except BaseException as error:
                if (
                    isinstance(error, DatabaseUnreachable)
                    or not isinstance(error, Exception)
                    or session.broken
                ):
                    await self._drop()
                raise

    async def run(self, operation: Operation[Answer]) -> Answer:
        """Run one operation; raises `DatabaseUnreachable` when the connection is lost or cannot be had."""
        async with self.session() as session:
            return await run_async(operation, session)

    async def insist(self, operation: Operation[Answer], *, patient: bool = False) -> tuple[Answer, int]:
        """Run one operation until it goes through, for operations that may run twice; answers with the tries taken.

        ``patient``: also where others hold a lock that it needs.
        """
        temporary = (DatabaseUnreachable, RetryTransaction, *((LockBusy,) if patient else ()))
        wait, tries = _FIRST_WAIT, 1
        while True:
            try:
                return await self.run(operation), tries
            except temporary as error:
                if tries in (1, 10, 100):
                    logger.warning("%s: %s; trying again", self.name, error.happened)
                await asyncio.sleep(wait * random.uniform(0.5, 1.0))  # noqa: S311 - spreads reconnections
                wait, tries = min(wait * 2, _LONGEST_WAIT), tries + 1

    async def close(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            await session.connection.close()

    async def _drop(self) -> None:
        self.losses += 1
        session, self._session = self._session, None
        if self._lost is not None:
            self._lost()
        if session is not None:
            await session.connection.close()
