"""The guard's own connections from a SQLAlchemy engine: made as the engine makes them, but never from its pool."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import sqlalchemy
from sqlalchemy.exc import DBAPIError, UnboundExecutionError
from sqlalchemy.orm import Session, scoped_session
from sqlalchemy.pool import NullPool

from semel.errors import ConfigurationError
from semel.sql import Catalogue
from semel.store.drivers import dbapi
from semel.store.drivers.sqlalchemy_driver import (
    SqlalchemyAsyncSession,
    SqlalchemySession,
    begin_sqlite,
    dialect_of,
    is_async,
)
from semel.store.origins import Home
from semel.store.own_sessions import AsyncOwnSession, OwnSession
from semel.store.own_sources import Source, prepare, prepare_async
from semel.store.statement import Rows, Statement

if TYPE_CHECKING:  # importing it needs greenlet, which sync use does without
    from sqlalchemy.ext.asyncio import AsyncConnection


class OwnSqlalchemySession(SqlalchemySession):
    """Every statement in a transaction: one of its own, where none is open."""

    wraps = True

    def __init__(self, connection: sqlalchemy.Connection, catalogue: Catalogue) -> None:
        super().__init__(connection, catalogue)
        self.connection = connection
        self._inside = False

    def execute(self, statement: Statement) -> Rows:
        if self._inside:
            return super().execute(statement)
        with self.transaction():
            return super().execute(statement)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if self._inside:
            with super().transaction():
                yield
            return
        self._inside = True
        try:
            with self.connection.begin():
                begin_sqlite(self.connection)
                yield
        except DBAPIError as error:
            _reraise(error)
        finally:
            self._inside = False

    def run_text(self, text: str) -> None:
        self.connection.exec_driver_sql(text).close()
        if not self._inside:
            self.connection.commit()

    def is_clean(self) -> bool:
        return not (self.connection.closed or self.connection.invalidated or self.connection.in_transaction())

    def is_alive(self) -> bool:
        try:
            self.run_text("SELECT 1")
        except DBAPIError:
            return False
        return True

    def close(self) -> None:
        self.connection.close()


class AsyncOwnSqlalchemySession(SqlalchemyAsyncSession):
    """The same for asyncio."""

    wraps = True

    def __init__(self, connection: AsyncConnection, catalogue: Catalogue) -> None:
        super().__init__(connection, catalogue)
        self.connection = connection
        self._inside = False

    async def execute(self, statement: Statement) -> Rows:
        if self._inside:
            return await super().execute(statement)
        async with self.transaction():
            return await super().execute(statement)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        if self._inside:
            async with super().transaction():
                yield
            return
        self._inside = True
        try:
            async with self.connection.begin():
                await self.connection.run_sync(begin_sqlite)
                yield
        except DBAPIError as error:
            _reraise(error)
        finally:
            self._inside = False

    async def run_text(self, text: str) -> None:
        (await self.connection.exec_driver_sql(text)).close()
        if not self._inside:
            await self.connection.commit()

    def is_clean(self) -> bool:
        return not (self.connection.closed or self.connection.invalidated or self.connection.in_transaction())

    async def is_alive(self) -> bool:
        try:
            await self.run_text("SELECT 1")
        except DBAPIError:
            return False
        return True

    async def close(self) -> None:
        await self.connection.close()


def source_of(target: object) -> Source | None:
    """For an engine, and for the one below a connection or a session; None for other objects of SQLAlchemy's."""
    if is_async(target, "AsyncEngine", "AsyncConnection", "AsyncSession", "async_scoped_session"):
        from sqlalchemy.ext.asyncio import AsyncEngine

        below = _engine_below(target)
        own = AsyncEngine(_own_engine(below))

        async def open_async(catalogue: Catalogue) -> AsyncOwnSession:
            try:
                connection = await own.connect()
                connection = await connection.execution_options(**_options(catalogue.dialect))
            except (DBAPIError, OSError) as error:
                dbapi.reraise(error, lost=True)
            return await prepare_async(AsyncOwnSqlalchemySession(connection, catalogue))

        return Source(dialect_of(own.dialect.name), None, open_async, _home(below))
    if not isinstance(target, sqlalchemy.Engine | sqlalchemy.Connection | Session | scoped_session):
        return None
    below = _engine_below(target)
    engine = _own_engine(below)

    def open_(catalogue: Catalogue) -> OwnSession:
        try:
            connection = engine.connect().execution_options(**_options(catalogue.dialect))
        except (DBAPIError, OSError) as error:
            dbapi.reraise(error, lost=True)
        return prepare(OwnSqlalchemySession(connection, catalogue))

    return Source(dialect_of(engine.dialect.name), open_, home=_home(below))


def _engine_below(target: Any) -> sqlalchemy.Engine:
    """The sync engine that an engine, a connection or a session of either kind works with."""
    if is_async(target, "async_scoped_session"):
        target = target()
    sync = next(
        (getattr(target, name) for name in ("sync_engine", "sync_session") if hasattr(target, name)), target
    )
    if isinstance(sync, Session | scoped_session):
        try:
            sync = sync.get_bind()
        except UnboundExecutionError as error:
            raise ConfigurationError(
                "The guard got a SQLAlchemy session that is bound to no engine.",
                remedy="Give the engine, or bind the session to one: Session(engine).",
            ) from error
    engine: sqlalchemy.Engine = sync.engine
    return engine


def _home(engine: sqlalchemy.Engine) -> Home:
    """Its own connections are known by its pool, which `dispose` replaces."""
    file = engine.url.database if engine.dialect.name == "sqlite" else None
    return Home(made_by=lambda: engine.pool, file=file)


def _own_engine(engine: sqlalchemy.Engine) -> sqlalchemy.Engine:
    """The same connections (URL, creator, connect_args, events) without the caller's pool: the guard has its own."""
    dialect = dialect_of(engine.dialect.name)
    if dialect not in ("postgresql", "mysql", "sqlite"):
        raise ConfigurationError(
            f"The guard does not keep records in {engine.dialect.name}.",
            remedy="Use PostgreSQL, MySQL, MariaDB or SQLite.",
        )
    if dialect == "sqlite" and engine.url.database in (None, "", ":memory:"):
        raise ConfigurationError(
            "The guard cannot use a SQLite database in memory: its own connection would see another one.",
            remedy="Use a file.",
        )
    pool = engine.pool
    own = NullPool(pool._creator, dialect=engine.dialect, _dispatch=pool.dispatch)  # noqa: SLF001
    return sqlalchemy.Engine(own, engine.dialect, engine.url)


def _options(dialect: str) -> dict[str, Any]:
    return {} if dialect == "sqlite" else {"isolation_level": "READ COMMITTED"}


def _reraise(error: DBAPIError) -> NoReturn:
    dbapi.reraise(error, lost=error.connection_invalidated)
