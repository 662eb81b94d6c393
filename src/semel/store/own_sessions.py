"""The guard's own connections as sessions: each statement commits by itself, and a transaction is the guard's to end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Protocol, TypeVar

from semel.sql import Catalogue
from semel.store.drivers import dbapi
from semel.store.drivers.by_hand import savepoint_by_hand, transaction_by_hand
from semel.store.drivers.mysql_driver import MysqlSession, is_open
from semel.store.drivers.psycopg3 import AsyncPsycopgSession, PsycopgSession, is_unused
from semel.store.drivers.sqlite_driver import SqliteSession
from semel.store.idle import has_something_to_say
from semel.store.run import AsyncSession, Session, Watch
from semel.store.statement import Copy, Rows, Statement

Value = TypeVar("Value")


class OwnSession(Session, Protocol):
    """A connection of the guard's own."""

    wraps: bool
    """Whether a statement by itself gets a transaction too: where the server's default isolation is a stricter one."""

    @property
    def connection(self) -> Any: ...
    def run_text(self, text: str) -> object: ...
    def is_clean(self) -> bool: ...
    def is_alive(self) -> bool: ...
    def close(self) -> None: ...


class AsyncOwnSession(AsyncSession, Protocol):
    """The same for asyncio."""

    wraps: bool

    @property
    def connection(self) -> Any: ...
    async def run_text(self, text: str) -> object: ...
    def is_clean(self) -> bool: ...
    async def is_alive(self) -> bool: ...
    async def close(self) -> None: ...


class ByHand:
    """Transactions by their statements, savepoints inside them; for sessions with `run_text` on autocommit."""

    dialect: str
    run_text: Callable[[str], object]
    _inside = False

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if self._inside:
            with savepoint_by_hand(self.run_text):
                yield
            return
        self._inside = True
        try:
            with transaction_by_hand(self.run_text, self.dialect):
                yield
        finally:
            self._inside = False


class OwnMysqlSession(ByHand, MysqlSession):  # type: ignore[misc]  # run_text is a method there
    wraps = False

    def is_clean(self) -> bool:
        return bool(self.connection.open) and not self._inside and not is_open(self.connection, ask=False)

    def is_alive(self) -> bool:
        try:
            self.connection.ping(*([False] if type(self.connection).__module__.startswith("pymysql") else []))
        except Exception:
            return False
        return True

    def close(self) -> None:
        if self.connection.open:
            self.connection.close()


class OwnSqliteSession(ByHand, SqliteSession):  # type: ignore[misc]
    wraps = False

    def is_clean(self) -> bool:
        return not self.connection.in_transaction

    def is_alive(self) -> bool:
        return True

    def close(self) -> None:
        self.connection.close()


class OwnPsycopgSession(PsycopgSession):
    wraps = False

    def execute(self, statement: Statement) -> Rows:
        if self.wraps and is_unused(self.connection):
            with self.transaction():
                return super().execute(statement)
        return super().execute(statement)

    def run_text(self, text: str) -> object:
        return self.connection.execute(text.encode())

    def is_clean(self) -> bool:
        return is_unused(self.connection)

    def is_alive(self) -> bool:
        return not self.connection.closed and not has_something_to_say(self.connection.fileno())

    def close(self) -> None:
        self.connection.close()


class AsyncOwnPsycopgSession(AsyncPsycopgSession):
    wraps = False

    async def execute(self, statement: Statement) -> Rows:
        if self.wraps and is_unused(self.connection):
            async with self.transaction():
                return await super().execute(statement)
        return await super().execute(statement)

    async def run_text(self, text: str) -> object:
        return await self.connection.execute(text.encode())

    def is_clean(self) -> bool:
        return is_unused(self.connection)

    async def is_alive(self) -> bool:
        return not self.connection.closed and not has_something_to_say(self.connection.fileno())

    async def close(self) -> None:
        await self.connection.close()


class ThreadedSession:
    """A sync session for asyncio: each call in a thread. One that is cancelled is waited for: its statement still runs."""

    def __init__(self, session: OwnSession) -> None:
        self.session = session
        self.watch: Watch | None = session.watch

    @property
    def dialect(self) -> str:
        return self.session.dialect

    @property
    def connection(self) -> Any:
        return self.session.connection

    async def execute(self, statement: Statement) -> Rows:
        return await in_thread(lambda: self.session.execute(statement))

    async def copy(self, copy: Copy) -> Rows:
        return await in_thread(lambda: self.session.copy(copy))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        block = self.session.transaction()
        await in_thread(block.__enter__)
        try:
            yield
        except BaseException as error:
            raised = error
            if not await in_thread(lambda: block.__exit__(type(raised), raised, raised.__traceback__)):
                raise
        else:
            await in_thread(lambda: block.__exit__(None, None, None))


async def in_thread(function: Callable[[], Value]) -> Value:
    """Call it in a thread. A cancellation is passed on once it has returned, so that nobody else uses what it uses."""
    work = asyncio.ensure_future(asyncio.to_thread(function))
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        work.exception()  # looked at: the cancellation is what is told
        raise cancelled
    return work.result()


def make_sqlite(path: str, catalogue: Catalogue, *, uri: bool = False) -> OwnSqliteSession:
    """A connection to a file, in autocommit, for one thread at a time."""
    import sqlite3

    try:
        connection = sqlite3.connect(
            path, uri=uri, isolation_level=None, check_same_thread=False, timeout=0.5
        )
    except sqlite3.Error as error:
        dbapi.reraise(error)
    return OwnSqliteSession(connection, catalogue)
