"""What the drivers below SQLAlchemy and Django have in common: how their errors tell, and how they COPY."""

from __future__ import annotations

import inspect
from typing import Any, Final, NoReturn

from semel.sql import Catalogue
from semel.store.drivers.copy_text import CopyReader, copy_command, copy_stream
from semel.store.faults import name_fault
from semel.store.run import AsyncSession
from semel.store.statement import Copy

_LOST: Final = frozenset({"OperationalError", "InterfaceError", "ConnectionDoesNotExistError"})
"""What drivers raise, without an SQLSTATE, where the connection ended."""


def reraise(error: Exception, *, lost: bool = False) -> NoReturn:
    """Raise semel's error for a driver's, which may be wrapped, where there is one; else ``error``."""
    cause = _driver_error(error)
    diagnostic = getattr(cause, "diag", cause)
    sqlstate = _sqlstate(cause)
    named = name_fault(
        cause,
        sqlstate=sqlstate,
        table=getattr(diagnostic, "table_name", None),
        constraint=getattr(diagnostic, "constraint_name", None),
        lost=lost or (sqlstate is None and type(cause).__name__ in _LOST),
    )
    if named is cause:
        raise error
    raise named from error


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
            for piece in copy_stream(copy):
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
        if _sqlstate(step) is not None or _sqlstate(found) is None:
            found = step


def _sqlstate(error: Exception) -> str | None:
    code = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    return code if isinstance(code, str) else None
