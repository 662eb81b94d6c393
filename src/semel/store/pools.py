"""An application's own connections for enqueuing: few, opened when first used, closed with the application.

There are no threads and no timers behind them: a failure to connect is the caller's at once, a fork starts
with none, and an interpreter that exits has nothing to wait for. Statements are prepared where the connection leads to
the server itself; behind a pooler, which may give the next one to another server process, none is prepared by name.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg

from semel.errors import DatabaseUnreachable
from semel.sql import Catalogue
from semel.store.connect import connect, connect_async
from semel.store.direct import is_direct, is_direct_async
from semel.store.drivers.psycopg3 import AsyncPsycopgSession, PsycopgSession
from semel.store.idle import has_something_to_say
from semel.store.run import AsyncSession, Session, Watch
from semel.store.sessions import async_session_for, sync_session_for

MOST_CONNECTIONS = 4
"""Of one process for its sync callers, and of each event loop."""

WAIT = 10.0
"""Seconds for a connection to come free, before the caller is told that none does."""

PREPARE_AFTER = 5
"""Uses of a statement on one connection before it is prepared, which takes a round trip of its own."""


@dataclass(slots=True, weakref_slot=True)
class _Lane:
    """The connections of a process's sync callers."""

    process: int = field(default_factory=os.getpid)
    permits: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(MOST_CONNECTIONS))
    idle: list[PsycopgSession] = field(default_factory=list)

    def __post_init__(self) -> None:
        weakref.finalize(self, _finish, self.idle, self.process)


@dataclass(slots=True, weakref_slot=True)
class _LoopLane:
    """The connections of one event loop."""

    process: int = field(default_factory=os.getpid)
    permits: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_CONNECTIONS))
    idle: list[AsyncPsycopgSession] = field(default_factory=list)

    def __post_init__(self) -> None:
        weakref.finalize(self, _finish, self.idle, self.process)


class Database:
    """Where an application's jobs are: a session on the caller's transaction, or on a connection of our own.

    Safe to share between threads, event loops and forked processes.
    """

    def __init__(self, url: Callable[[], str], catalogue: Catalogue, *, watch: Watch | None = None) -> None:
        self.catalogue = catalogue
        self.watch = watch
        self._url = url
        self._lane = _Lane()
        self._loop_lanes: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopLane] = (
            weakref.WeakKeyDictionary()
        )

    @contextmanager
    def session(self, tx: Any = None) -> Iterator[Session]:
        """On the caller's transaction, which is left open; without one, on our own, in autocommit."""
        if tx is not None:
            yield sync_session_for(tx, self.catalogue)
            return
        lane = self._own_lane()
        if not lane.permits.acquire(timeout=WAIT):
            raise _exhausted()
        try:
            session = _reusable(lane.idle)
            if session is None:
                session = self._connect()
            try:
                yield session
            finally:
                if lane is self._lane and _is_clean(session.connection):
                    lane.idle.append(session)
                else:
                    session.connection.close()
        finally:
            lane.permits.release()

    @asynccontextmanager
    async def async_session(self, tx: Any = None) -> AsyncIterator[AsyncSession]:
        """`session`, for asyncio."""
        if tx is not None:
            yield async_session_for(tx, self.catalogue)
            return
        lane = self._loop_lane()
        try:
            await asyncio.wait_for(lane.permits.acquire(), WAIT)
        except TimeoutError:
            raise _exhausted() from None
        try:
            session = _reusable(lane.idle)
            if session is None:
                session = await self._connect_async()
            try:
                yield session
            finally:
                if self._loop_lanes.get(asyncio.get_running_loop()) is lane and _is_clean(session.connection):
                    lane.idle.append(session)
                else:
                    await session.connection.close()
        finally:
            lane.permits.release()

    @property
    def url(self) -> Callable[[], str]:
        """Where it connects to, asked for when a connection is made."""
        return self._url

    def close(self) -> None:
        """Close the connections of sync callers; one in use is closed when it comes free. A later use opens
        anew."""
        lane, self._lane = self._lane, _Lane()
        if lane.process == os.getpid():
            while lane.idle:
                lane.idle.pop().connection.close()

    async def aclose(self) -> None:
        """`close`, and the connections of this event loop."""
        lane = self._loop_lanes.pop(asyncio.get_running_loop(), None)
        if lane is not None and lane.process == os.getpid():
            while lane.idle:
                await lane.idle.pop().connection.close()
        self.close()

    def _connect(self) -> PsycopgSession:
        session = connect(self._url(), self.catalogue, watch=self.watch)
        session.connection.prepare_threshold = None
        try:
            if is_direct(session):
                session.connection.prepare_threshold = PREPARE_AFTER
        except BaseException:
            session.connection.close()
            raise
        session.keep_cursor()
        return session

    async def _connect_async(self) -> AsyncPsycopgSession:
        url = await asyncio.to_thread(self._url)
        session = await connect_async(url, self.catalogue, watch=self.watch)
        session.connection.prepare_threshold = None
        try:
            if await is_direct_async(session):
                session.connection.prepare_threshold = PREPARE_AFTER
        except BaseException:
            await session.connection.close()
            raise
        session.keep_cursor()
        return session

    def _own_lane(self) -> _Lane:
        if self._lane.process != os.getpid():  # the parent's sockets are its own; libpq leaves them open
            self._lane = _Lane()
        return self._lane

    def _loop_lane(self) -> _LoopLane:
        loop = asyncio.get_running_loop()
        lane = self._loop_lanes.get(loop)
        if lane is None or lane.process != os.getpid():
            for ended in [each for each in self._loop_lanes if each.is_closed()]:
                del self._loop_lanes[ended]
            lane = self._loop_lanes[loop] = _LoopLane()
        return lane


def _finish(idle: Sequence[PsycopgSession | AsyncPsycopgSession], process: int) -> None:
    """Close what a lane still holds when it goes, at the latest with the interpreter; a fork holds nothing."""
    if process == os.getpid():
        for session in idle:
            session.connection.pgconn.finish()


def _reusable(idle: list[Any]) -> Any:
    """The connection used last that the server has not ended meanwhile; None where there is none."""
    while idle:
        try:
            session = idle.pop()
        except IndexError:  # another thread took it
            break
        connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any] = session.connection
        if not connection.closed and not has_something_to_say(connection.fileno()):
            return session
        connection.pgconn.finish()
    return None


def _is_clean(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    return not connection.closed and connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def _exhausted() -> DatabaseUnreachable:
    return DatabaseUnreachable(
        f"All {MOST_CONNECTIONS} connections for enqueuing stayed in use for {WAIT:.0f} s.",
        holds="Nothing was stored.",
        remedy="Enqueue on your own connection (tx=…), or many jobs at once with enqueue_many.",
    )
