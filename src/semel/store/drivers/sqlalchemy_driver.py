"""SQLAlchemy: Core connections and ORM sessions, sync and async, over any of its PostgreSQL drivers.

A session is resolved to its connection at each statement, so that the job is in the session's own
transaction. Nothing is flushed and nothing is committed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NoReturn

import sqlalchemy
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session

from semel.errors import ConnectionRefused
from semel.sql import Catalogue
from semel.store.drivers import dbapi
from semel.store.drivers.refusals import closed, not_postgresql
from semel.store.run import Watch
from semel.store.statement import Copy, Rows, Statement


class SqlalchemySession:
    """A `Connection` or an ORM `Session` as a session."""

    def __init__(self, target: Any, catalogue: Catalogue, watch: Watch | None = None) -> None:
        self._target = target
        self.catalogue = catalogue
        self.watch = watch

    @property
    def can_copy(self) -> bool:
        return dbapi.can_copy(self._connection().connection.driver_connection)

    def execute(self, statement: Statement) -> Rows:
        connection = self._connection()
        try:
            return _rows(connection.execute(_text(statement, self.catalogue), dict(statement.parameters)))
        except DBAPIError as error:
            _reraise(error)

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
        try:
            with connection.begin_nested():
                yield
        except DBAPIError as error:
            _reraise(error)

    def _connection(self) -> sqlalchemy.Connection:
        target = self._target
        return _checked(target if isinstance(target, sqlalchemy.Connection) else target.connection())


class SqlalchemyAsyncSession:
    """An `AsyncConnection` or an ORM `AsyncSession` as a session."""

    def __init__(self, target: Any, catalogue: Catalogue, watch: Watch | None = None) -> None:
        self._target = target
        self.catalogue = catalogue
        self.watch = watch

    @property
    def can_copy(self) -> bool:
        if isinstance(self._target, AsyncConnection):
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
                await connection.execute(_text(statement, self.catalogue), dict(statement.parameters))
            )
        except DBAPIError as error:
            _reraise(error)

    async def copy(self, copy: Copy) -> Rows:
        raw = await (await self._connection()).get_raw_connection()
        return await dbapi.async_session(raw.driver_connection, self.catalogue).copy(copy)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        connection = await self._connection()
        await connection.run_sync(_check_transactional)
        try:
            async with connection.begin_nested():
                yield
        except DBAPIError as error:
            _reraise(error)

    async def _connection(self) -> AsyncConnection:
        target = self._target
        connection = target if isinstance(target, AsyncConnection) else await target.connection()
        await connection.run_sync(_checked)
        return connection


def session_on(tx: object, catalogue: Catalogue) -> SqlalchemySession | SqlalchemyAsyncSession | None:
    """A session on what the caller gave; None for other objects of SQLAlchemy's."""
    if isinstance(tx, AsyncConnection | AsyncSession | async_scoped_session):
        if isinstance(tx, AsyncConnection) and tx.closed:
            raise closed(tx)
        return SqlalchemyAsyncSession(tx, catalogue)
    if isinstance(tx, sqlalchemy.Connection):
        return SqlalchemySession(_checked(tx), catalogue)
    if isinstance(tx, Session | scoped_session):
        return SqlalchemySession(tx, catalogue)
    return None


def _checked(connection: sqlalchemy.Connection) -> sqlalchemy.Connection:
    if connection.closed:
        raise closed(connection)
    if connection.dialect.name != "postgresql":
        raise not_postgresql(connection, connection.dialect.name)
    return connection


def _check_transactional(connection: sqlalchemy.Connection) -> None:
    """The driver's own word: `in_transaction()` is true on a connection in AUTOCOMMIT as well."""
    if getattr(connection.connection.dbapi_connection, "autocommit", False):
        raise ConnectionRefused(
            "tx= is a connection in AUTOCOMMIT, and these jobs take more than one statement.",
            holds="Nothing was stored.",
            remedy="Give a connection with a transaction, or leave out tx=.",
        )


def _text(statement: Statement, catalogue: Catalogue) -> sqlalchemy.TextClause:
    return sqlalchemy.text(catalogue.text(statement.name, **statement.literals).bare)


def _rows(result: sqlalchemy.CursorResult[Any]) -> Rows:
    return [tuple(row) for row in result] if result.returns_rows else ()


def _reraise(error: DBAPIError) -> NoReturn:
    dbapi.reraise(error, lost=error.connection_invalidated)
