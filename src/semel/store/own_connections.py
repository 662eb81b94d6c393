"""The guard's own connections to where its records are: few, opened when first used, never the caller's.

A claim on the caller's connection would be gone with the caller's rollback; one from the caller's pool would wait for ever
where that pool has one connection. Statements by themselves commit at once; they wait half a second for a lock (MySQL: one).
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
import time
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from semel.errors import ConnectionRefused, DatabaseUnreachable
from semel.sql import Catalogue
from semel.store.origins import Home
from semel.store.own_sessions import AsyncOwnSession, OwnSession, ThreadedSession, in_thread
from semel.store.own_sources import Source, find_source
from semel.store.run import Watch

MOST_CONNECTIONS: Final = 4
"""Of one process for its sync callers, and of each event loop."""

WAIT: Final = 10.0
"""Seconds for a connection to come free."""

_TRUSTED_FOR: Final = 1.0
"""Seconds that an idle connection is taken to be alive without a look."""

Own = TypeVar("Own")


@dataclass(slots=True, weakref_slot=True)
class _Lane(Generic[Own]):
    """Connections of one process, and for asyncio of one event loop; the one used last is taken first."""

    permits: Any
    process: int = field(default_factory=os.getpid)
    idle: list[tuple[Own, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        weakref.finalize(self, _finish, self.idle, self.process)


class _Use:
    """How one use of a connection went: a broken one is dropped, and after an error it is looked at before the next."""

    def __init__(self) -> None:
        self.broken = False
        self.trusted_from = 0.0

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        self.broken = kind is not None and issubclass(kind, DatabaseUnreachable)
        self.trusted_from = time.monotonic() if kind is None else -math.inf


class OwnSessions:
    """The guard's connections for one target. Safe to share between threads, event loops and forked processes."""

    def __init__(
        self,
        source: Source,
        catalogue: Catalogue,
        *,
        watch: Watch | None = None,
        most: int = MOST_CONNECTIONS,
        used_for: str = "single statements",
    ) -> None:
        self.catalogue = catalogue
        self.watch = watch
        self._source = source
        self._most = most
        self._used_for = used_for
        self._beside: OwnSessions | None = None
        """Who opens the connections, and says what watches them; None: these themselves."""
        self._lane: _Lane[OwnSession] = self._new_lane()
        self._loop_lanes: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Lane[AsyncOwnSession]] = (
            weakref.WeakKeyDictionary()
        )
        self._inherited: list[Any] = []
        """Of the process that this one was forked from: kept, since letting go of them would end its connections."""

    @property
    def dialect(self) -> str:
        return self.catalogue.dialect

    @property
    def is_sync(self) -> bool:
        """Whether sync callers can use them: an async engine is for asyncio alone."""
        return self._source.open is not None

    @property
    def home(self) -> Home:
        """Where they lead, as far as that is known without connecting."""
        return self._source.home

    def beside(self, most: int, used_for: str) -> OwnSessions:
        """Further connections to the same place, with a bound of their own: neither waits for the other."""
        other = OwnSessions(self._source, self.catalogue, most=most, used_for=used_for)
        other._beside = self
        return other

    @contextmanager
    def session(self) -> Iterator[OwnSession]:
        """A connection of the guard's. Raises DatabaseUnreachable, and UnsafeClaim for a server that takes no writes."""
        if self._source.open is None:
            raise ConnectionRefused(
                "The guard has an async engine, in a sync call.",
                remedy="Guard an async function, or give the guard a sync engine or a DSN.",
            )
        lane = self._own_lane()
        if not lane.permits.acquire(timeout=WAIT):
            raise self._exhausted()
        try:
            session = self._take(lane)
            use = _Use()
            try:
                with use:
                    yield session
            finally:
                self._give(lane, session, use)
        finally:
            lane.permits.release()

    @asynccontextmanager
    async def async_session(self) -> AsyncIterator[AsyncOwnSession | ThreadedSession]:
        """`session`, for asyncio; where the driver is a sync one, in threads."""
        if self._source.open_async is None:
            async with self._threaded() as threaded:
                yield threaded
            return
        lane = self._loop_lane()
        try:
            await asyncio.wait_for(lane.permits.acquire(), WAIT)
        except TimeoutError:
            raise self._exhausted() from None
        try:
            session = await self._take_async(lane)
            use = _Use()
            try:
                with use:
                    yield session
            finally:
                current = self._loop_lanes.get(asyncio.get_running_loop()) is lane
                if current and not use.broken and session.is_clean():
                    lane.idle.append((session, use.trusted_from))
                else:
                    await session.close()
        finally:
            lane.permits.release()

    def close(self) -> None:
        """Close the connections of sync callers; one in use is closed when it comes free. A later use opens anew."""
        lane, self._lane = self._lane, self._new_lane()
        if lane.process == os.getpid():
            while lane.idle:
                lane.idle.pop()[0].close()

    async def aclose(self) -> None:
        """`close`, and the connections of this event loop."""
        lane = self._loop_lanes.pop(asyncio.get_running_loop(), None)
        if lane is not None and lane.process == os.getpid():
            while lane.idle:
                await lane.idle.pop()[0].close()
        await in_thread(self.close)

    @asynccontextmanager
    async def _threaded(self) -> AsyncIterator[ThreadedSession]:
        lane = self._own_lane()
        ends = time.monotonic() + WAIT
        while not lane.permits.acquire(blocking=False):
            if time.monotonic() > ends:
                raise self._exhausted()
            await asyncio.sleep(0.01)
        taken: list[OwnSession] = []
        use = _Use()
        try:
            await in_thread(lambda: taken.append(self._take(lane)))
            with use:
                yield ThreadedSession(taken[0])
        finally:
            try:
                if taken:
                    await in_thread(lambda: self._give(lane, taken[0], use))
            finally:
                lane.permits.release()

    def _take(self, lane: _Lane[OwnSession]) -> OwnSession:
        if self._beside is not None:
            return self._beside._take(lane)  # noqa: SLF001
        while lane.idle:
            try:
                session, since = lane.idle.pop()
            except IndexError:  # another thread took it
                break
            if time.monotonic() - since < _TRUSTED_FOR or session.is_alive():
                return session
            session.close()
        assert self._source.open is not None
        session = self._source.open(self.catalogue)
        session.watch = self.watch
        return session

    async def _take_async(self, lane: _Lane[AsyncOwnSession]) -> AsyncOwnSession:
        if self._beside is not None:
            return await self._beside._take_async(lane)  # noqa: SLF001
        while lane.idle:
            session, since = lane.idle.pop()
            if time.monotonic() - since < _TRUSTED_FOR or await session.is_alive():
                return session
            await session.close()
        assert self._source.open_async is not None
        session = await self._source.open_async(self.catalogue)
        session.watch = self.watch
        return session

    def _give(self, lane: _Lane[OwnSession], session: OwnSession, use: _Use) -> None:
        current = lane is self._lane and lane.process == os.getpid()
        if current and not use.broken and session.is_clean():
            lane.idle.append((session, use.trusted_from))
        else:
            session.close()

    def _own_lane(self) -> _Lane[OwnSession]:
        if self._lane.process != os.getpid():
            self._inherited.append(self._lane)
            self._lane = self._new_lane()
        return self._lane

    def _loop_lane(self) -> _Lane[AsyncOwnSession]:
        loop = asyncio.get_running_loop()
        lane = self._loop_lanes.get(loop)
        if lane is None or lane.process != os.getpid():
            if lane is not None:
                self._inherited.append(lane)
            for ended in [each for each in self._loop_lanes if each.is_closed()]:
                del self._loop_lanes[ended]
            lane = self._loop_lanes[loop] = _Lane(asyncio.Semaphore(self._most))
        return lane

    def _new_lane(self) -> _Lane[OwnSession]:
        return _Lane(threading.Semaphore(self._most))

    def _exhausted(self) -> DatabaseUnreachable:
        return DatabaseUnreachable(
            f"All {self._most} connections of the guard for {self._used_for} stayed in use for {WAIT:.0f} s.",
            holds="Nothing was claimed.",
            remedy="Is the database slow? A Row() called without .on(…) holds one for as long as its function runs.",
        )


def open_own(target: object, *, schema: str = "semel", watch: Watch | None = None) -> OwnSessions:
    """The guard's own connections to where ``target`` leads; none is opened yet.

    A target is a DSN, the path of a SQLite file, a pool or connection of psycopg's, a pool of asyncpg's, an engine of
    SQLAlchemy's, a Django alias, or an application of semel's. Raises ConfigurationError for others.
    """
    source = find_source(target)
    return OwnSessions(source, Catalogue(schema, source.dialect), watch=watch)


def _finish(idle: list[tuple[Any, float]], process: int) -> None:
    """Close what a lane still holds when it goes, at the latest with the interpreter; a fork closes nothing."""
    if process != os.getpid():
        return
    for session, _ in idle:
        finish = getattr(getattr(session.connection, "pgconn", None), "finish", None)
        try:
            if finish is not None:
                finish()
            elif not asyncio.iscoroutinefunction(session.close):
                session.close()
        except Exception:  # noqa: S110  # at the end of the interpreter half of it may be gone
            pass
