"""Where the guard keeps its records: its own connections for outside effects, the caller's transaction for a `Row()`."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from semel.errors import DatabaseUnreachable, RetryTransaction, UnsafeClaim
from semel.guard.beat import Beat
from semel.guard.operation import Handle
from semel.guard.same_database import SameDatabase
from semel.sql import Catalogue
from semel.store.open_transactions import (
    describe_open_transaction,
    django_transaction,
    in_atomic_block,
    is_django_alias,
    will_begin,
)
from semel.store.own_connections import OwnSessions, open_own
from semel.store.run import run, run_async
from semel.store.sessions import async_session_for, sync_session_for
from semel.store.statement import Operation

MOST_ROWS: Final = 8
"""Transactions of `Row()` operations called without ``.on(…)``, of one process and of each event loop."""

_PAUSES: Final = (0.05, 0.1)
"""Before a connection is tried again."""

_DEADLOCKS: Final = 15
"""So many in a row are tried again: MySQL's inserts lock their neighbours' keys, and one of two is ended at once."""
_THREE_COMMITS: Final = (
    "A Row() was called on a connection without an open transaction: claim, effect and completion would be "
    "three commits."
)


class _Tries:
    """How often one operation has been tried; gives the pause before the next try, or raises what was the last error."""

    def __init__(self) -> None:
        self._pauses = iter(_PAUSES)
        self._deadlocks = 0

    def pause_after(self, error: Exception) -> float:
        if isinstance(error, RetryTransaction):
            self._deadlocks += 1
            if self._deadlocks < _DEADLOCKS:
                return random.uniform(0.002, 0.02) * self._deadlocks  # noqa: S311
        else:
            pause = next(self._pauses, None)
            if pause is not None:
                return pause
        raise error


@dataclass(frozen=True, slots=True)
class Inside:
    """A transaction that a `Row()` is in: how to ask on it, and the connection that the handler writes with."""

    ask: Callable[[Operation[Any]], Any]
    connection: Any
    given: Any = None
    """The session on the caller's connection, where the caller gave one: is it in the guard's database?"""


class Place:
    """The database of one `Once`."""

    def __init__(self, target: object, schema: str) -> None:
        self.target = target
        self._own: OwnSessions = open_own(target, schema=schema)
        self._own_rows = self._own.beside(MOST_ROWS, "Row() operations")
        self._own_beat = self._own.beside(1, "keeping leases")
        self._catalogue = Catalogue(schema, self._own.dialect)
        self.same_database = SameDatabase(self._own.home, self._own.dialect)
        self.beat = Beat(self._asking_beat)
        self.inside: ContextVar[Any] = ContextVar("semel_inside", default=None)
        """A test's connection that everything runs on, as savepoints; see `semel.testing.inside_transaction`."""

    @property
    def dialect(self) -> str:
        """Of the database that has the records."""
        return self._own.dialect

    @property
    def schema(self) -> str:
        """Of the records' tables, where the database has schemas."""
        return self._catalogue.schema

    @property
    def is_sync(self) -> bool:
        """Whether `ask` works: with an async engine, only `ask_async` does."""
        return self._own.is_sync

    def ask(self, operation: Operation[Any]) -> Any:
        """Run one of the guard's operations on a connection of its own. Safe to repeat: each is fenced by its token."""
        inside = self.inside.get()
        if inside is not None:
            return run(operation, sync_session_for(inside, self._catalogue))
        return _ask(self._own, operation)

    @contextmanager
    def _asking_beat(self) -> Iterator[Callable[[Operation[Any]], Any]]:
        """`ask`, on the one connection that nobody else uses: a lease does not end because others are busy.

        An async engine gets an event loop of the beat's thread: the handler's own may be busy.
        """
        if self._own_beat.is_sync:
            yield partial(_ask, self._own_beat)
            return
        with asyncio.Runner() as runner:
            try:
                yield lambda operation: runner.run(_ask_async(self._own_beat, operation))
            finally:
                with suppress(Exception):  # whatever the driver raises: nothing more is asked of it
                    runner.run(self._own_beat.aclose())

    async def ask_async(self, operation: Operation[Any]) -> Any:
        """`ask`, for asyncio."""
        inside = self.inside.get()
        if inside is not None:
            return await run_async(operation, async_session_for(inside, self._catalogue))
        return await _ask_async(self._own, operation)

    def refuse_open_transaction(self, job_type: str) -> None:
        """An outside effect is refused where the caller's transaction is visibly open: it may roll back after the call."""
        if self.inside.get() is not None:
            return
        open_now = describe_open_transaction(self.target)
        if open_now is not None:
            raise UnsafeClaim(
                f"{job_type} has an effect outside the database, and {open_now}.",
                holds="Nothing was claimed and nothing done.",
                remedy="Call it after your commit; or pass Once(dsn), if what is open has nothing to do with it.",
            )

    @contextmanager
    def transaction(self, tx: Any) -> Iterator[Inside]:
        """The caller's transaction, or a new one on a connection of the guard's, committed at the end of the block."""
        given = tx if tx is not None else self.inside.get()
        if given is not None:
            require_transaction(given, _THREE_COMMITS)
            caller = sync_session_for(given, self._catalogue)
            caller.watch = self._own.watch
            with (
                caller.transaction() if tx is None else nullcontext()
            ):  # a test's: its rollback is not the test's
                yield Inside(lambda operation: run(operation, caller), given, self._unproven(caller))
            return
        if isinstance(self.target, str) and is_django_alias(self.target):
            with django_transaction(self.target) as connection:  # the one that the ORM writes on
                caller = sync_session_for(connection, self._catalogue)
                yield Inside(lambda operation: run(operation, caller), connection)
            return
        with self._own_rows.session() as session, session.transaction():
            yield Inside(lambda operation: run(operation, session), session.connection)

    @asynccontextmanager
    async def transaction_async(self, tx: Any) -> AsyncIterator[Inside]:
        """`transaction`, for asyncio."""
        given = tx if tx is not None else self.inside.get()
        if given is not None:
            require_transaction(given, _THREE_COMMITS)
            caller = async_session_for(given, self._catalogue)
            caller.watch = self._own.watch
            async with caller.transaction() if tx is None else nullcontext():
                yield Inside(lambda operation: run_async(operation, caller), given, self._unproven(caller))
            return
        async with self._own_rows.async_session() as session, session.transaction():
            yield Inside(lambda operation: run_async(operation, session), session.connection)

    def _unproven(self, caller: Any) -> Any:
        """In a test's connection the guard's own asks run there too: it is the guard's database."""
        return caller if self.inside.get() is None else None

    def keep(self, handle: Handle) -> AbstractContextManager[None]:
        """Keeps the lease while the block runs; inside a test's connection there is nobody to take over."""
        return self.beat.keep(handle) if self.inside.get() is None else nullcontext()

    def close(self) -> None:
        """Close the guard's own connections."""
        for own in (self._own, self._own_rows, self._own_beat):
            own.close()

    async def aclose(self) -> None:
        """Close the guard's own connections, those of asyncio too."""
        for own in (self._own, self._own_rows, self._own_beat):
            await own.aclose()


def _ask(own: OwnSessions, operation: Operation[Any]) -> Any:
    tries = _Tries()
    while True:
        try:
            with own.session() as session:
                return run(operation, session)
        except (DatabaseUnreachable, RetryTransaction) as error:
            time.sleep(tries.pause_after(error))


async def _ask_async(own: OwnSessions, operation: Operation[Any]) -> Any:
    tries = _Tries()
    while True:
        try:
            async with own.async_session() as session:
                return await run_async(operation, session)
        except (DatabaseUnreachable, RetryTransaction) as error:
            await asyncio.sleep(tries.pause_after(error))


def require_transaction(tx: Any, otherwise: str) -> None:
    """Refuse a connection on which a write would commit at once. One that begins by itself passes."""
    if not will_begin(tx) and describe_open_transaction_or_test(tx) is None:
        raise UnsafeClaim(
            otherwise,
            holds="Nothing was claimed and nothing done.",
            remedy='Open one: "with connection.transaction():", "with transaction.atomic():", or BEGIN.',
        )


def describe_open_transaction_or_test(tx: Any) -> str | None:
    """As `describe_open_transaction`, but a test's own wrapping block counts: it is a transaction."""
    found = describe_open_transaction(tx)
    if found is None and in_atomic_block(tx):
        return "an atomic block of a test"
    return found
