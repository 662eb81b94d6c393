"""psycopg 3, sync and async."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NoReturn

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from semel.sql import Catalogue
from semel.store.drivers.copy_text import copy_command
from semel.store.faults import name_fault
from semel.store.run import Watch
from semel.store.statement import Copy, Rows, Statement


def _reraise(error: psycopg.Error, broken: bool) -> NoReturn:
    """Raise semel's error for a driver's error where there is one, else the driver's own."""
    diagnostic = error.diag
    lost = broken or (isinstance(error, psycopg.OperationalError) and error.sqlstate is None)
    named = name_fault(
        error,
        sqlstate=error.sqlstate,
        table=diagnostic.table_name,
        constraint=diagnostic.constraint_name,
        lost=lost,
    )
    if named is error:
        raise error
    raise named from error


def _together(catalogue: Catalogue, first: str, text: str) -> str:
    """Both statements in one text, which only the simple protocol takes: psycopg puts the parameters into it."""
    return f"{catalogue.text(first).named};\n{text}"


class PsycopgSession:
    """A `psycopg.Connection` as a session. It never commits what the caller began."""

    dialect = "postgresql"

    def __init__(
        self, connection: psycopg.Connection[Any], catalogue: Catalogue, watch: Watch | None = None
    ) -> None:
        self.connection = connection
        self.catalogue = catalogue
        self.watch = watch
        self._kept: psycopg.Cursor[tuple[Any, ...]] | None = None

    def keep_cursor(self) -> None:
        """Use one cursor from now on, which spares a quarter of a short statement; its last result stays in memory."""
        self._kept = self.connection.cursor(row_factory=tuple_row)

    @property
    def broken(self) -> bool:
        return self.connection.closed

    def execute(self, statement: Statement) -> Rows:
        text = self.catalogue.text(statement.name, **statement.literals).named
        try:
            if statement.first is not None:
                with psycopg.ClientCursor(self.connection, row_factory=tuple_row) as both:
                    both.execute(_together(self.catalogue, statement.first, text), statement.parameters)
                    both.nextset()
                    return both.fetchall()
            if self._kept is not None:
                self._kept.execute(text, statement.parameters)
                return self._kept.fetchall() if self._kept.rownumber is not None else ()
            with self.connection.cursor(row_factory=tuple_row) as cursor:
                cursor.execute(text, statement.parameters)
                return cursor.fetchall() if cursor.rownumber is not None else ()
        except psycopg.Error as error:
            _reraise(error, self.connection.broken)

    def copy(self, copy: Copy) -> Rows:
        try:
            with (
                self.connection.cursor() as cursor,
                cursor.copy(copy_command(copy, self.catalogue).encode()) as stream,
            ):
                for piece in copy.pieces:
                    stream.write(piece)
        except psycopg.Error as error:
            _reraise(error, self.connection.broken)
        return ()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if begins_by_itself(self.connection):
            yield
            return
        own: BaseException | None = None
        try:
            with self.connection.transaction():
                try:
                    yield
                except BaseException as error:
                    own = error
                    raise
        except psycopg.Error as error:
            if error is own and not self.connection.broken:
                raise  # of whoever uses the transaction: not about semel's tables
            _reraise(error, self.connection.broken)


class AsyncPsycopgSession:
    """A `psycopg.AsyncConnection` as a session. It never commits what the caller began."""

    dialect = "postgresql"

    def __init__(
        self, connection: psycopg.AsyncConnection[Any], catalogue: Catalogue, watch: Watch | None = None
    ) -> None:
        self.connection = connection
        self.catalogue = catalogue
        self.watch = watch
        self._kept: psycopg.AsyncCursor[tuple[Any, ...]] | None = None

    def keep_cursor(self) -> None:
        """Use one cursor from now on, which spares a quarter of a short statement; its last result stays in memory."""
        self._kept = self.connection.cursor(row_factory=tuple_row)

    @property
    def broken(self) -> bool:
        return self.connection.closed

    async def execute(self, statement: Statement) -> Rows:
        text = self.catalogue.text(statement.name, **statement.literals).named
        try:
            if statement.first is not None:
                async with psycopg.AsyncClientCursor(self.connection, row_factory=tuple_row) as both:
                    await both.execute(_together(self.catalogue, statement.first, text), statement.parameters)
                    both.nextset()
                    return await both.fetchall()
            if self._kept is not None:
                await self._kept.execute(text, statement.parameters)
                return await self._kept.fetchall() if self._kept.rownumber is not None else ()
            async with self.connection.cursor(row_factory=tuple_row) as cursor:
                await cursor.execute(text, statement.parameters)
                return await cursor.fetchall() if cursor.rownumber is not None else ()
        except psycopg.Error as error:
            _reraise(error, self.connection.broken)

    async def copy(self, copy: Copy) -> Rows:
        try:
            async with (
                self.connection.cursor() as cursor,
                cursor.copy(copy_command(copy, self.catalogue).encode()) as stream,
            ):
                for piece in copy.pieces:
                    await stream.write(piece)
        except psycopg.Error as error:
            _reraise(error, self.connection.broken)
        return ()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        if begins_by_itself(self.connection):
            yield
            return
        own: BaseException | None = None
        try:
            async with self.connection.transaction():
                try:
                    yield
                except BaseException as error:
                    own = error
                    raise
        except psycopg.Error as error:
            if error is own and not self.connection.broken:
                raise  # of whoever uses the transaction: not about semel's tables
            _reraise(error, self.connection.broken)


def is_in_transaction(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """Whether a transaction is open on it."""
    return connection.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR)


def is_unused(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """Whether it is open and in no transaction, so that somebody else may use it."""
    return not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE


def begins_by_itself(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """Whether the next statement opens the caller's transaction, which is the caller's to commit.

    `Connection.transaction` would commit it, and there is nothing before it that a savepoint could save.
    """
    return not connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE
