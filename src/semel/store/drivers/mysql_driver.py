"""PyMySQL and mysqlclient, for MariaDB and MySQL.

A write answers one row for each row that it changed; every write of the guard raises the revision, so CLIENT.FOUND_ROWS,
which counts rows that were only found, makes no difference.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

from semel.sql import Catalogue
from semel.store.drivers import dbapi
from semel.store.drivers.by_hand import savepoint_by_hand, transaction_by_hand
from semel.store.run import Watch
from semel.store.statement import Copy, Rows, Statement

_IN_TRANSACTION: Final = 1
"""The server's flag SERVER_STATUS_IN_TRANS."""


class MysqlSession:
    """A connection of PyMySQL's or mysqlclient's as a session. It never commits what the caller began."""

    dialect = "mysql"
    can_copy = False

    def __init__(self, connection: Any, catalogue: Catalogue, watch: Watch | None = None) -> None:
        self.connection = connection
        self.catalogue = catalogue
        self.watch = watch
        root = next(name for name in _roots(connection) if name in ("pymysql", "MySQLdb"))
        self._plain_cursor = sys.modules[f"{root}.cursors"].Cursor
        """Rows as tuples, whatever cursor the connection makes by itself."""

    def execute(self, statement: Statement) -> Rows:
        text = self.catalogue.text(statement.name, **statement.literals).named
        try:
            with self.connection.cursor(self._plain_cursor) as cursor:
                cursor.execute(text, dict(statement.parameters))
                return dbapi.answered(cursor, self.dialect)
        except Exception as error:
            _reraise(error)

    def copy(self, copy: Copy) -> Rows:
        raise NotImplementedError

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if is_open(self.connection):
            with savepoint_by_hand(self.run_text):
                yield
        else:
            with transaction_by_hand(self.run_text, self.dialect):
                yield

    def run_text(self, text: str) -> Rows:
        """One statement as it is, without parameters."""
        try:
            with self.connection.cursor(self._plain_cursor) as cursor:
                cursor.execute(text)
                return dbapi.answered(cursor, self.dialect)
        except Exception as error:
            _reraise(error)


def is_mysql(tx: object) -> bool:
    """Whether it is a connection of PyMySQL's or mysqlclient's."""
    return bool({"pymysql", "MySQLdb"} & set(_roots(tx))) and hasattr(tx, "cursor") and hasattr(tx, "commit")


def is_open(connection: Any) -> bool:
    """Whether a transaction is open, or the next statement opens one: the server's flag misses that with autocommit off."""
    if not connection.get_autocommit():
        return True
    return bool(getattr(connection, "server_status", 0) & _IN_TRANSACTION)


def _roots(tx: object) -> list[str]:
    return [cls.__module__.partition(".")[0] for cls in type(tx).__mro__]


def _reraise(error: Exception) -> NoReturn:
    dbapi.reraise(error)
