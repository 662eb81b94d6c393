"""What the drivers below SQLAlchemy and Django have in common: how their errors tell, and how they COPY."""

from __future__ import annotations

import inspect
import sqlite3
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from semel.sql import Catalogue
from semel.store.drivers.copy_text import CopyReader, copy_command
from semel.store.faults import name_fault, name_mysql_fault, name_sqlite_fault
from semel.store.run import AsyncSession
from semel.store.statement import Copy, Row

_LOST: Final = frozenset({"OperationalError", "InterfaceError", "ConnectionDoesNotExistError"})
"""What drivers raise, without an SQLSTATE, where the connection ended."""


def reraise(error: Exception, *, lost: bool = False, connection: Any = None) -> NoReturn:
    """Raise semel's error for a driver's, which may be wrapped, where there is one; else ``error``.

    ``connection`` is the driver's, where it is known: SQLite's is asked what its code leaves open.
    """
    cause = _driver_error(error)
    named = _name(cause, lost, connection)
    if named is cause:
        raise error
    raise named from error


def answered(cursor: Any, dialect: str) -> Sequence[Row]:
    """What a statement gave; on MySQL, which has no RETURNING, a write gives a row for each one that it changed."""
    if cursor.description:
        return cursor.fetchall()  # type: ignore[no-any-return]
    return changed(cursor.rowcount) if dialect == "mysql" else ()


def changed(count: int) -> Sequence[Row]:
    """``count`` rows, to be told from none."""
    return ((1,),) * max(count, 0)


def _name(cause: Exception, lost: bool, connection: Any) -> Exception:
    code = _number(cause)
    if code is not None and isinstance(cause, sqlite3.Error):
        return name_sqlite_fault(cause, code, has_tables=lambda: _has_tables(connection))
    if code is not None:
        return name_mysql_fault(cause, code, lost=lost or type(cause).__name__ == "InterfaceError")
    diagnostic = getattr(cause, "diag", cause)
    sqlstate = _sqlstate(cause)
    return name_fault(
        cause,
        sqlstate=sqlstate,
        table=getattr(diagnostic, "table_name", None),
        constraint=getattr(diagnostic, "constraint_name", None),
        lost=lost or (sqlstate is None and type(cause).__name__ in _LOST),
    )


def _has_tables(connection: Any) -> bool:
    """Whether SQLite has the guard's tables; where that cannot be asked, they are not what is wrong."""
    try:
        found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'semel_operations'").fetchone()
    except Exception:
        return True
    return found is not None


def can_copy(driver_connection: object) -> bool:
    """Whether `copy_into` can take it: a sync connection of psycopg, 3 or 2."""
    asynchronous = inspect.iscoroutinefunction(getattr(driver_connection, "commit", None))
    return _library(driver_connection) in ("psycopg", "psycopg2") and not asynchronous


def copy_into(driver_connection: Any, copy: Copy, catalogue: Catalogue) -> None:
    """COPY on a sync driver's connection, in the transaction that it is in."""
    command = copy_command(copy, catalogue)
    with driver_connection.cursor() as cursor:
        if _library(driver_connection) == "psycopg2":
            cursor.copy_expert(command, CopyReader(copy))
            return
        with cursor.copy(command) as stream:
            for piece in copy.pieces:
                stream.write(piece)


def async_session(driver_connection: Any, catalogue: Catalogue) -> AsyncSession:
    """The driver's own session, on the connection that a library has wrapped."""
    if _library(driver_connection) == "asyncpg":
        from semel.store.drivers.asyncpg_driver import AsyncpgSession

        return AsyncpgSession(driver_connection, catalogue)
    from semel.store.drivers.psycopg3 import AsyncPsycopgSession

    return AsyncPsycopgSession(driver_connection, catalogue)


def _library(driver_connection: object) -> str:
    """The first of its classes that is a driver's: users and libraries derive their own."""
    roots = [cls.__module__.partition(".")[0] for cls in type(driver_connection).__mro__]
    return next((root for root in roots if root in ("psycopg", "psycopg2", "asyncpg")), roots[0])


def _driver_error(error: Exception) -> Exception:
    """The innermost error that carries an SQLSTATE, else the innermost cause."""
    found = step = error
    while True:
        inner = getattr(step, "orig", None) or step.__cause__
        if not isinstance(inner, Exception) or inner is step:
            return found
        step = inner
        if _number(found) is None and (_sqlstate(step) is not None or _sqlstate(found) is None):
            found = step


def _number(error: Exception) -> int | None:
    """The code of SQLite's, or the number of a MySQL driver's error."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", None)
    if {"pymysql", "MySQLdb", "asyncmy", "aiomysql"} & {
        cls.__module__.partition(".")[0] for cls in type(error).__mro__
    }:
        number = error.args[0] if error.args else 0
        return number if isinstance(number, int) else 0
    return None


def _sqlstate(error: Exception) -> str | None:
    code = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    return code if isinstance(code, str) else None
