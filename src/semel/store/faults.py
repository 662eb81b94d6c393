"""The database's errors in semel's words, told apart by SQLSTATE or number, never by their text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from semel.errors import (
    DatabaseUnreachable,
    RetryTransaction,
    SchemaMismatch,
    SemelError,
    UnsafeClaim,
)

_SCHEMA = frozenset({"42P01", "3F000", "42703", "42883"})
_BUSY = frozenset(
    {"55P03", "55000", "57014"}
)  # lock_timeout, a DETACH under way, statement_timeout or a cancel
_RETRY = frozenset({"40001", "40P01"})
_ENDED = frozenset(
    {
        "57P01",
        "57P02",
        "57P03",
        "57P05",
        "25P04",
        "53300",
        "53400",
    }  # ended, shutting down, too many connections
    | {"08000", "08001", "08003", "08004", "08006", "08P01"}
)


class HistoryDayMissing(SemelError):
    """A completion met a day of the history that is not there yet; make it and repeat."""

    code = "history-day-missing"


class LockBusy(SemelError):
    """A statement gave up on a lock that others hold (lock_timeout); nothing was changed."""

    code = "lock-busy"


def transaction_gone(why: str) -> RetryTransaction:
    """The database ended the caller's whole transaction, with all that it had written; a savepoint does not help."""
    return RetryTransaction(
        f"The database ended this transaction: {why}.",
        holds="The transaction is gone: nothing of it is stored, the caller's own rows included.",
        remedy="Run the whole transaction again.",
    )


def name_fault(
    error: Exception, *, sqlstate: str | None, table: str | None, constraint: str | None, lost: bool
) -> Exception:
    """The error to raise for a driver's error: one of semel's where there is one, else the driver's own."""
    summary = _summary(error)
    if sqlstate == "23514" and constraint is None and table == "jobs_done":
        return HistoryDayMissing(f"The history has no partition for today: {summary}.")
    if sqlstate in _BUSY:
        return _busy(summary)
    if sqlstate in _RETRY:
        return RetryTransaction(
            f"The database ended this transaction: {summary}.",
            holds="Nothing of it is stored.",
            remedy="Run the whole transaction again.",
        )
    if sqlstate in _SCHEMA:
        return _mismatch(summary, "Run: semel migrate")
    if lost or sqlstate in _ENDED:
        return _ended(summary)
    return error


_MYSQL_BUSY: Final = frozenset({1205, 3572})  # lock wait timeout; NOWAIT
_MYSQL_GONE: Final = frozenset(
    {1213, 1020}
)  # deadlock; changed since the snapshot (innodb_snapshot_isolation)
_MYSQL_SCHEMA: Final = frozenset({1146, 1054})  # no such table, no such column
_MYSQL_READ_ONLY: Final = frozenset({1290, 1792, 1836})
_MYSQL_ENDED: Final = frozenset(
    {1040, 1042, 1053, 1077, 1079, 1129, 1152, 1158, 1159, 1160, 1161, 1184, 1203, 1927, 4031}
)
_MYSQL_CLIENT: Final = range(2000, 2100)
"""Numbers of the client's own: it could not connect, or the connection ended."""


def name_mysql_fault(error: Exception, number: int, *, lost: bool = False) -> Exception:
    """`name_fault` for MariaDB's and MySQL's numbers."""
    summary = _summary(error)
    if number in _MYSQL_BUSY:
        return _busy(summary)
    if number in _MYSQL_GONE:
        return transaction_gone(summary)
    if number in _MYSQL_SCHEMA:
        return _mismatch(
            summary, "Create the guard's tables: semel migration sql --only guard --dialect mysql"
        )
    if number in _MYSQL_READ_ONLY:
        return _read_only(summary)
    if lost or number in _MYSQL_ENDED or number in _MYSQL_CLIENT:
        return _ended(summary)
    return error


_SQLITE_ERROR: Final = 1
_SQLITE_BUSY: Final = 5
_SQLITE_LOCKED: Final = 6
_SQLITE_READ_ONLY: Final = 8
_SQLITE_CANNOT_OPEN: Final = 14
_SQLITE_BUSY_SNAPSHOT: Final = 517


def name_sqlite_fault(error: Exception, code: int, *, has_tables: Callable[[], bool]) -> Exception:
    """`name_fault` for SQLite's extended codes. ``has_tables`` is asked where the code says only that something is wrong."""
    summary = _summary(error)
    if code == _SQLITE_BUSY_SNAPSHOT:
        return RetryTransaction(
            f"Another connection wrote since this transaction read: {summary}.",
            holds="The transaction is still open, but can write no more.",
            remedy="Roll back and run the whole transaction again; begin it with BEGIN IMMEDIATE.",
        )
    primary = code & 0xFF
    if primary in (_SQLITE_BUSY, _SQLITE_LOCKED):
        return _busy(summary)
    if primary == _SQLITE_READ_ONLY:
        return _read_only(summary)
    if primary == _SQLITE_CANNOT_OPEN:
        return _ended(summary)
    if code == _SQLITE_ERROR and not has_tables():
        return _mismatch(
            summary, "Create the guard's tables: semel migration sql --only guard --dialect sqlite"
        )
    return error


def _summary(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _busy(summary: str) -> LockBusy:
    return LockBusy(f"Others hold a lock that this needs: {summary}.", remedy="Try again later.")


def _mismatch(summary: str, remedy: str) -> SchemaMismatch:
    return SchemaMismatch(
        f"semel's tables are not there, or not as this version needs them: {summary}.",
        holds="Nothing was stored.",
        remedy=remedy,
    )


def _ended(summary: str) -> DatabaseUnreachable:
    return DatabaseUnreachable(
        f"The connection to the database ended: {summary}.",
        holds="What was not committed is gone; a commit that was under way may have happened.",
        remedy="Check that the server runs and takes connections; workers try again by themselves.",
    )


def _read_only(summary: str) -> UnsafeClaim:
    return UnsafeClaim(
        f"The database takes no writes here: {summary}.",
        holds="Nothing was stored.",
        remedy="Give the guard the primary server, or a file that it may write to.",
    )
