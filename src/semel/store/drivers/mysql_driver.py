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
_IS_OPEN: Final = "SELECT @@in_transaction"
_NO_SUCH_VARIABLE: Final = 1193


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
        except BaseException as error:
            self._leave(error)

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
        except BaseException as error:
            self._leave(error)

    def _leave(self, error: BaseException) -> NoReturn:
        """Reraise it. What interrupts a statement from outside (Ctrl-C, a soft time limit) can leave its answer under way.

        The next statement would take that for its own: the connection is closed, as PyMySQL does where it was reading.
        """
        names = {kind.__name__ for kind in type(error).__mro__}
        if not names & {"Error", "TypeError", "ValueError"} and self.connection.open:
            self.connection.close()
        if isinstance(error, Exception):
            _reraise(error)
        raise error


def is_mysql(tx: object) -> bool:
    """Whether it is a connection of PyMySQL's or mysqlclient's."""
    return bool({"pymysql", "MySQLdb"} & set(_roots(tx))) and hasattr(tx, "cursor") and hasattr(tx, "commit")


def is_open(connection: Any, *, ask: bool = True) -> bool:
    """Whether a transaction is open, or the next statement opens one: the server's flag misses that with autocommit off.

    mysqlclient does not show the flag: with autocommit on the server is asked, unless ``ask`` is False.
    """
    if not connection.get_autocommit():
        return True
    status = getattr(connection, "server_status", None)
    if status is not None:
        return bool(status & _IN_TRANSACTION)
    return ask and _says_open(connection)


def _says_open(connection: Any) -> bool:
    """MariaDB's word for it; MySQL has none, and then nothing visibly is."""
    import MySQLdb
    from MySQLdb.cursors import Cursor

    try:
        with connection.cursor(Cursor) as cursor:
            cursor.execute(_IS_OPEN)
            return bool(cursor.fetchone()[0])
    except MySQLdb.OperationalError as error:
        if error.args[0] == _NO_SUCH_VARIABLE:
            return False
        _reraise(error)


def _roots(tx: object) -> list[str]:
    return [cls.__module__.partition(".")[0] for cls in type(tx).__mro__]


def _reraise(error: Exception) -> NoReturn:
    dbapi.reraise(error)
