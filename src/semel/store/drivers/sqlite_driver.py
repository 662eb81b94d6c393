"""sqlite3 of the standard library."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from semel.sql import Catalogue
from semel.store.drivers import dbapi
from semel.store.drivers.by_hand import BEGIN, savepoint_by_hand, transaction_by_hand
from semel.store.run import Watch
from semel.store.statement import Copy, Row, Rows, Statement

_LEGACY: Final = -1
"""``sqlite3.LEGACY_TRANSACTION_CONTROL``, which Python 3.11 does not have yet."""


class SqliteSession:
    """A `sqlite3.Connection` as a session. It never commits what the caller began."""

    dialect = "sqlite"
    can_copy = False

    def __init__(
        self, connection: sqlite3.Connection, catalogue: Catalogue, watch: Watch | None = None
    ) -> None:
        self.connection = connection
        self.catalogue = catalogue
        self.watch = watch

    def execute(self, statement: Statement) -> Rows:
        text = self.catalogue.text(statement.name, **statement.literals).bare
        try:
            cursor = self.connection.cursor()
            cursor.row_factory = None  # tuples, whatever the connection makes
            return list(cursor.execute(text, dict(statement.parameters)))
        except sqlite3.Error as error:
            dbapi.reraise(error, connection=self.connection)

    def copy(self, copy: Copy) -> Rows:
        raise NotImplementedError

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if self.connection.in_transaction:
            with savepoint_by_hand(self.run_text):
                yield
        elif begins_by_itself(self.connection):
            self.run_text(BEGIN[self.dialect])  # the caller's transaction, which the caller ends
            yield
        else:
            with transaction_by_hand(self.run_text, self.dialect):
                yield

    def run_text(self, text: str) -> list[Row]:
        """One statement as it is, without parameters."""
        try:
            return list(self.connection.execute(text))
        except sqlite3.Error as error:
            dbapi.reraise(error, connection=self.connection)


def begins_by_itself(connection: sqlite3.Connection) -> bool:
    """Whether the next write opens a transaction, which is the caller's to commit."""
    mode = getattr(connection, "autocommit", _LEGACY)
    return connection.isolation_level is not None if mode == _LEGACY else not mode
