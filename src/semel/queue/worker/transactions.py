"""Jobs declared with ``transaction=True``: the handler's work and the job's end are one commit.

The handler gets a connection with an open transaction. When it returns, the fenced completion goes into the same
transaction: where the claim is lost it changes no row, and everything rolls back.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any

import msgspec

from semel.core.outcomes import Snooze
from semel.errors import ClaimLost, DatabaseUnreachable
from semel.queue.worker.board import Held
from semel.store.connect import connect, connect_async
from semel.store.drivers.psycopg3 import AsyncPsycopgSession, PsycopgSession, is_unused
from semel.store.faults import HistoryDayMissing
from semel.store.jobs import Detail, settle
from semel.store.pools import Database
from semel.store.run import run, run_async
from semel.store.upkeep import make_history_days

Encode = Callable[[Held, Any], bytes | None]
_SOON = timedelta(seconds=1)


class Transactions:
    """Connections for handlers' transactions: as many as attempts that need one at once, kept for the next."""

    def __init__(self, url: str, database: Database, remember: timedelta, encode: Encode) -> None:
        self._url = url
        self._catalogue = database.catalogue
        self._watch = database.watch
        self._remember = remember
        self._encode = encode
        self._lock = threading.Lock()
        self._idle: list[PsycopgSession] = []
        self._idle_async: list[AsyncPsycopgSession] = []

    def run(self, held: Held, call: Callable[[Any], Any]) -> Any:
        """Call a sync handler with a connection; commit its work together with the job's end, or nothing."""
        with self._transaction() as session:
            result = call(session.connection)
            held.settling = True
            pairs = run(settle([held.fence], self._details(held, result), remember=self._remember), session)
            if not pairs:
                raise _lost(held)
        held.settled = True
        return result

    async def run_async(self, held: Held, call: Callable[[Any], Awaitable[Any]]) -> Any:
        """`run`, for an async handler."""
        async with self._transaction_async() as session:
            result = await call(session.connection)
            held.settling = True
            operation = settle([held.fence], self._details(held, result), remember=self._remember)
            if not await run_async(operation, session):
                raise _lost(held)
        held.settled = True
        return result

    def lost(self, error: ClaimLost) -> bool:
        """Whether this error is ours: the completion found that the claim no longer holds."""
        return isinstance(error, _CompletionLost)

    async def close(self) -> None:
        """Close what is idle; what a handler still uses closes with its process."""
        with self._lock:
            idle, self._idle = self._idle, []
        for session in idle:
            session.connection.close()
        while self._idle_async:
            await self._idle_async.pop().connection.close()

    def _details(self, held: Held, result: Any) -> list[Detail]:
        encoded = self._encode(held, result)
        if encoded is None:
            return []
        return [Detail(held.job.id, held.job.claim, result=msgspec.Raw(encoded))]

    @contextmanager
    def _transaction(self) -> Iterator[PsycopgSession]:
        """A session with an open transaction. `Snooze` where it could not begin, such as on a connection that has gone."""
        with self._session() as session:
            began = False
            try:
                with session.transaction():
                    began = True
                    yield session
            except DatabaseUnreachable as error:
                if began:
                    raise
                raise _not_now(error) from error

    @asynccontextmanager
    async def _transaction_async(self) -> AsyncIterator[AsyncPsycopgSession]:
        async with self._session_async() as session:
            began = False
            try:
                async with session.transaction():
                    began = True
                    yield session
            except DatabaseUnreachable as error:
                if began:
                    raise
                raise _not_now(error) from error

    @contextmanager
    def _session(self) -> Iterator[PsycopgSession]:
        with self._lock:
            session = self._idle.pop() if self._idle else None
        if session is None:
            try:
                session = connect(self._url, self._catalogue, watch=self._watch, name="semel transaction")
            except DatabaseUnreachable as error:
                raise _not_now(error) from error
            session.keep_cursor()
        try:
            yield session
        except HistoryDayMissing as error:
            run(make_history_days(ahead=1), session)
            raise _not_now(error) from error
        finally:
            if is_unused(session.connection):
                with self._lock:
                    self._idle.append(session)
            else:
                session.connection.close()

    @asynccontextmanager
    async def _session_async(self) -> AsyncIterator[AsyncPsycopgSession]:
        if self._idle_async:
            session = self._idle_async.pop()
        else:
            try:
                session = await connect_async(
                    self._url, self._catalogue, watch=self._watch, name="semel transaction"
                )
            except DatabaseUnreachable as error:
                raise _not_now(error) from error
            session.keep_cursor()
        try:
            yield session
        except HistoryDayMissing as error:
            await run_async(make_history_days(ahead=1), session)
            raise _not_now(error) from error
        finally:
            if is_unused(session.connection):
                self._idle_async.append(session)
            else:
                await session.connection.close()


class _CompletionLost(ClaimLost):
    """Raised when the completion inside a handler's transaction changed no row."""


def _not_now(error: DatabaseUnreachable | HistoryDayMissing) -> Snooze:
    """Nothing of the handler's work is stored, through no fault of its own: it is not charged."""
    return Snooze(for_=_SOON, reason=f"its transaction could not be had: {error.happened}")


def _lost(held: Held) -> _CompletionLost:
    return _CompletionLost(
        f"Attempt {held.job.attempt} of job {held.job.id} had lost its claim when its handler returned.",
        holds="Its transaction was rolled back: none of its work is stored.",
    )
