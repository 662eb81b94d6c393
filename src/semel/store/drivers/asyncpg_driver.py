"""asyncpg. It has no transaction of its own accord: outside of one, each statement commits by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NoReturn

import asyncpg

from semel.sql import Catalogue
from semel.store.drivers.copy_text import copy_bytes
from semel.store.drivers.refusals import closed
from semel.store.faults import name_fault
from semel.store.origins import Origin
from semel.store.run import Watch
from semel.store.statement import Copy, Rows, Statement


class AsyncpgSession:
    """An `asyncpg.Connection`, or what a pool lends in its place. It never commits what the caller began."""

    dialect = "postgresql"

    def __init__(self, connection: Any, catalogue: Catalogue, watch: Watch | None = None) -> None:
        if connection.is_closed():
            raise closed(connection)
        self.connection = connection
        self.catalogue = catalogue
        self.watch = watch

    def find_origin(self) -> Origin:
        """The connection itself, where a pool lends a proxy of it."""
        return Origin(getattr(self.connection, "_con", None) or self.connection)

    async def execute(self, statement: Statement) -> Rows:
        text, order = self.catalogue.text(statement.name, **statement.literals).numbered
        try:
            rows = await self.connection.fetch(text, *(statement.parameters[name] for name in order))
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            _reraise(error, self.connection)
        return [tuple(row) for row in rows]

    async def copy(self, copy: Copy) -> Rows:
        try:
            await self.connection.copy_to_table(
                copy.table,
                source=copy_bytes(copy),
                columns=copy.columns,
                schema_name=self.catalogue.schema,
                format="text",
            )
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            _reraise(error, self.connection)
        return ()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        try:
            if self.connection.is_in_transaction():
                async with self._savepoint():
                    yield
            else:
                async with self.connection.transaction():
                    yield
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            _reraise(error, self.connection)

    @asynccontextmanager
    async def _savepoint(self) -> AsyncIterator[None]:
        """By hand: `Connection.transaction` refuses a transaction that was begun with BEGIN."""
        await self.connection.execute("SAVEPOINT semel")
        try:
            yield
        except BaseException:
            if not self.connection.is_closed():
                await self.connection.execute("ROLLBACK TO SAVEPOINT semel; RELEASE SAVEPOINT semel")
            raise
        await self.connection.execute("RELEASE SAVEPOINT semel")


def is_connection(tx: object) -> bool:
    """Whether it is a connection of asyncpg's, rather than a pool or another of its objects."""
    return isinstance(tx, asyncpg.Connection | asyncpg.pool.PoolConnectionProxy)


def _reraise(error: Exception, connection: Any) -> NoReturn:
    """Raise semel's error for a driver's error where there is one, else the driver's own."""
    named = name_fault(
        error,
        sqlstate=getattr(error, "sqlstate", None),
        table=getattr(error, "table_name", None),
        constraint=getattr(error, "constraint_name", None),
        lost=isinstance(error, OSError) or connection.is_closed(),
    )
    if named is error:
        raise error
    raise named from error
