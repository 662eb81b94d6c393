"""SQLAlchemy: Core connections and ORM sessions, sync and async, over any of its drivers for PostgreSQL; for the guard also
for MySQL, MariaDB and SQLite.

A session is resolved to its connection at each statement, so that the job is in the session's own
transaction. Nothing is flushed and nothing is committed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import sqlalchemy
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.orm import Session, scoped_session

from semel.errors import ConnectionRefused
from semel.sql import Catalogue
from semel.store.drivers import dbapi
from semel.store.drivers.refusals import closed, wrong_database
from semel.store.origins import Origin
from semel.store.run import Watch
from semel.store.statement import Copy, Rows, Statement

if TYPE_CHECKING:  # importing it needs greenlet, which sync use does without
    from sqlalchemy.ext.asyncio import AsyncConnection


class SqlalchemySession:
    """A `Connection` or an ORM `Session` as a session."""

    def __init__(self, target: Any, catalogue: Catalogue, watch: Watch | None = None) -> None:
        self._target = target
        self.catalogue = catalogue
        self.watch = watch

    @property
    def dialect(self) -> str:
        return self.catalogue.dialect

    @property
    def can_copy(self) -> bool:
        return dbapi.can_copy(self._connection().connection.driver_connection)

    def execute(self, statement: Statement) -> Rows:
        connection = self._connection()
        try:
            return _rows(
                connection.execute(_text(statement, self.catalogue), dict(statement.parameters)),
                self.dialect,
            )
        except DBAPIError as error:
            _reraise(error, connection)

    def copy(self, copy: Copy) -> Rows:
        connection = self._connection()
        try:
            dbapi.copy_into(connection.connection.driver_connection, copy, self.catalogue)
        except Exception as error:  # the driver's own, which SQLAlchemy did not see
            dbapi.reraise(error)
        return ()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        connection = self._connection()
        _check_transactional(connection)
        begin_sqlite(connection)
        try:
            with connection.begin_nested():
                yield
        except DBAPIError as error:
            _reraise(error, connection)

    def find_origin(self) -> Origin:
        """The driver's connection, and the pool that it comes from."""
        return _origin(self._connection())

    def _connection(self) -> sqlalchemy.Connection:
        target = self._target
        connection = target if isinstance(target, sqlalchemy.Connection) else target.connection()
        return _checked(connection, self.dialect)


class SqlalchemyAsyncSession:
    """An `AsyncConnection` or an ORM `AsyncSession` as a session."""

    def __init__(self, target: Any, catalogue: Catalogue, watch: Watch | None = None) -> None:
        self._target = target
        self.catalogue = catalogue
        self.watch = watch

    @property
    def dialect(self) -> str:
        return self.catalogue.dialect

    @property
    def can_copy(self) -> bool:
        if is_async(self._target, "AsyncConnection"):
            driver = self._target.dialect.driver
        else:
            try:
                driver = self._target.get_bind().dialect.driver
            except SQLAlchemyError:  # several binds: which one is only known by what is executed
                return False
        return driver in ("asyncpg", "psycopg", "psycopg_async")

    async def execute(self, statement: Statement) -> Rows:
        connection = await self._connection()
        try:
            return _rows(
                await connection.execute(_text(statement, self.catalogue), dict(statement.parameters)),
                self.dialect,
            )
        except DBAPIError as error:
            _reraise(error, connection.sync_connection)

    async def copy(self, copy: Copy) -> Rows:
        raw = await (await self._connection()).get_raw_connection()
        return await dbapi.async_session(raw.driver_connection, self.catalogue).copy(copy)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        connection = await self._connection()
        await connection.run_sync(_check_transactional)
        await connection.run_sync(begin_sqlite)
        try:
            async with connection.begin_nested():
                yield
        except DBAPIError as error:
            _reraise(error, connection.sync_connection)

    async def find_origin(self) -> Origin:
        """`SqlalchemySession.find_origin`."""
        return await (await self._connection()).run_sync(_origin)

    async def _connection(self) -> AsyncConnection:
        target = self._target
        connection: AsyncConnection = (
            target if is_async(target, "AsyncConnection") else await target.connection()
        )
        await connection.run_sync(_checked, self.dialect)
        return connection


def is_async(tx: object, *names: str) -> bool:
    """Whether it is one of these classes of ``sqlalchemy.ext.asyncio``, told without importing that."""
    return any(
        cls.__name__ in names and cls.__module__.startswith("sqlalchemy.ext.asyncio")
        for cls in type(tx).__mro__
    )


def session_on(tx: object, catalogue: Catalogue) -> SqlalchemySession | SqlalchemyAsyncSession | None:
    """A session on what the caller gave; None for other objects of SQLAlchemy's."""
    if is_async(tx, "AsyncConnection", "AsyncSession", "async_scoped_session"):
        if is_async(tx, "AsyncConnection") and getattr(tx, "closed", False):
            raise closed(tx)
        return SqlalchemyAsyncSession(tx, catalogue)
    if isinstance(tx, sqlalchemy.Connection):
        return SqlalchemySession(_checked(tx, catalogue.dialect), catalogue)
    if isinstance(tx, Session | scoped_session):
        return SqlalchemySession(tx, catalogue)
    return None


def dialect_of(name: str) -> str:
    """Which of the guard's dialects one of SQLAlchemy's is."""
    return "mysql" if name == "mariadb" else name


def _origin(connection: sqlalchemy.Connection) -> Origin:
    return Origin(connection.connection.driver_connection, connection.engine.pool)


def _checked(connection: sqlalchemy.Connection, dialect: str) -> sqlalchemy.Connection:
    if connection.closed:
        raise closed(connection)
    if dialect_of(connection.dialect.name) != dialect:
        raise wrong_database(connection, connection.dialect.name, dialect)
    return connection


def _check_transactional(connection: sqlalchemy.Connection) -> None:
    """The driver's own word: `in_transaction()` is true on a connection in AUTOCOMMIT as well."""
    if _is_autocommit(connection.connection.dbapi_connection, connection.dialect.name):
        raise ConnectionRefused(
            "tx= is a connection in AUTOCOMMIT, and this takes more than one statement.",
            holds="Nothing was stored.",
            remedy="Give a connection with a transaction, or leave out tx=.",
        )


def _is_autocommit(driver: Any, name: str) -> bool:
    if dialect_of(name) == "mysql":
        return bool(driver.get_autocommit()) if hasattr(driver, "get_autocommit") else False
    if name == "sqlite":
        return driver.isolation_level is None and not driver.in_transaction
    return bool(getattr(driver, "autocommit", False))


def begin_sqlite(connection: sqlalchemy.Connection) -> None:
    """sqlite3 begins a transaction at the first write only; a savepoint before it would be committed when released."""
    if connection.dialect.name == "sqlite":
        driver: Any = connection.connection.dbapi_connection
        if not driver.in_transaction:
            connection.exec_driver_sql("BEGIN IMMEDIATE")


def _text(statement: Statement, catalogue: Catalogue) -> sqlalchemy.TextClause:
    return sqlalchemy.text(catalogue.text(statement.name, **statement.literals).bare)


def _rows(result: sqlalchemy.CursorResult[Any], dialect: str) -> Rows:
    if result.returns_rows:
        return [tuple(row) for row in result]
    return dbapi.changed(result.rowcount) if dialect == "mysql" else ()


def _reraise(error: DBAPIError, connection: sqlalchemy.Connection | None) -> NoReturn:
    driver = None
    if connection is not None and connection.dialect.name == "sqlite" and not connection.invalidated:
        driver = connection.connection.driver_connection
    dbapi.reraise(error, lost=error.connection_invalidated, connection=driver)
