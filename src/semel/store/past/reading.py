"""Connections that read somebody's table: one read-only transaction, a time-out on each statement, nothing kept."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any, Final, Protocol
from urllib.parse import quote as quote_url
from urllib.parse import unquote

from semel.core.zones import Zone
from semel.errors import ConfigurationError, DatabaseUnreachable, QueryRefused, SemelError, StatementTimedOut
from semel.sql import Catalogue
from semel.store.connect import connect
from semel.store.own_sources import connect_mysql, mysql_options
from semel.store.past.writing import Pieces, with_colon, with_percent
from semel.store.statement import Rows

_STEPS: Final = 10_000
"""After so many steps SQLite asks whether its time is up: some ten thousand times a second."""
_TIMED_OUT: Final = frozenset({1969, 3024})  # MariaDB, MySQL
_LOST: Final = frozenset({2006, 2013, 2014, 2055, 1053, 1927})
_MINUTE: Final = timedelta(seconds=60)


class Reader(Protocol):
    """Runs statements that read."""

    def rows(self, pieces: Pieces, values: Mapping[str, int]) -> Rows: ...


def opening(dialect: str, zone: Zone, timeout: timedelta) -> tuple[str, ...]:
    """The statements that begin it: read-only, all statements see the same moment, each ends after ``timeout``."""
    milliseconds = max(1, round(timeout.total_seconds() * 1_000))
    if dialect == "postgresql":
        name = f"INTERVAL '{zone.name}' HOUR TO MINUTE" if zone.offset is not None else f"'{zone.name}'"
        return (
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            f"SET LOCAL statement_timeout = {milliseconds}",
            f"SET LOCAL TIME ZONE {name}",
        )
    if dialect == "mysql":
        return (
            f"SET time_zone = '{zone.name}' /*M!100101 , SESSION max_statement_time = {milliseconds / 1_000} */ "
            f"/*!80000 , SESSION max_execution_time = {milliseconds} */",
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        )
    return ("PRAGMA query_only = ON", "BEGIN")


def dialect_of(url: str) -> str | None:
    """Which dialect a URL leads to; None where it is no database's."""
    name = url.partition("://")[0].partition("+")[0].lower() if "://" in url else ""
    return {
        "postgresql": "postgresql",
        "postgres": "postgresql",
        "mysql": "mysql",
        "mariadb": "mysql",
        "sqlite": "sqlite",
    }.get(name)


@contextmanager
def open_reader(url: str, zone: Zone, timeout: timedelta = _MINUTE) -> Iterator[Reader]:
    """One read-only transaction on the database that ``url`` leads to. Raises `DatabaseUnreachable`."""
    dialect = dialect_of(url)
    opened = {"postgresql": _postgresql, "mysql": _mysql, "sqlite": _sqlite}.get(dialect or "")
    if opened is None or dialect is None:
        raise ConfigurationError(
            "This is no URL of a database that can be read.",
            remedy="Write postgresql://, mysql:// or sqlite:///path, or give a file.",
        )
    with opened(url, opening(dialect, zone, timeout), timeout) as reader:
        yield reader


@contextmanager
def _postgresql(url: str, begin: tuple[str, ...], timeout: timedelta) -> Iterator[Reader]:
    with closing(connect(url, Catalogue(), name="semel repeats").connection) as connection:
        connection.prepare_threshold = None
        reader = _PostgresqlReader(connection, timeout)
        for text in begin:
            reader.rows((text,), {})
        yield reader
        connection.execute(b"ROLLBACK")


@contextmanager
def _mysql(url: str, begin: tuple[str, ...], timeout: timedelta) -> Iterator[Reader]:
    with closing(connect_mysql(*mysql_options(url))) as connection:
        reader = _MysqlReader(connection, timeout)
        for text in begin:
            reader.rows((text,), {})
        yield reader


@contextmanager
def _sqlite(url: str, begin: tuple[str, ...], timeout: timedelta) -> Iterator[Reader]:
    path = unquote(url.partition("://")[2].partition("?")[0])[1:]
    try:
        connection = sqlite3.connect(f"file:{quote_url(path)}?mode=ro", uri=True, isolation_level=None)
    except sqlite3.Error as error:
        raise DatabaseUnreachable(
            f"Could not open {path!r}: {error}.",
            remedy="Check the path: sqlite:///relative or sqlite:////absolute.",
        ) from error
    with closing(connection):
        reader = SqliteReader(connection, timeout)
        for text in begin:
            reader.rows((text,), {})
        yield reader


class _PostgresqlReader:
    def __init__(self, connection: Any, timeout: timedelta) -> None:
        self._connection = connection
        self._timeout = timeout

    def rows(self, pieces: Pieces, values: Mapping[str, int]) -> Rows:
        import psycopg

        try:
            cursor = self._connection.execute(with_percent(pieces).encode(), dict(values))
            return cursor.fetchall() if cursor.description else ()
        except psycopg.Error as error:
            if error.sqlstate == "57014":
                raise timed_out(self._timeout) from error
            if self._connection.broken or (
                error.sqlstate is None and isinstance(error, psycopg.OperationalError)
            ):
                raise _lost(error) from error
            raise _refused(error) from error


class _MysqlReader:
    def __init__(self, connection: Any, timeout: timedelta) -> None:
        self._connection = connection
        self._timeout = timeout

    def rows(self, pieces: Pieces, values: Mapping[str, int]) -> Rows:
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(with_percent(pieces), dict(values))
                return cursor.fetchall() if cursor.description else ()
        except Exception as error:
            number = error.args[0] if error.args else None
            if number in _TIMED_OUT:
                raise timed_out(self._timeout) from error
            if number in _LOST:
                raise _lost(error) from error
            if isinstance(number, int):
                raise _refused(Exception(error.args[-1])) from error
            raise


class SqliteReader:
    """A connection of sqlite3's; texts come as bytes, since a file may hold any."""

    def __init__(self, connection: sqlite3.Connection, timeout: timedelta | None) -> None:
        self._connection = connection
        self._timeout = timeout
        self._ends = 0.0
        connection.text_factory = bytes
        if timeout is not None:
            connection.set_progress_handler(self._is_late, _STEPS)

    def rows(self, pieces: Pieces, values: Mapping[str, int]) -> Rows:
        self._ends = time.monotonic() + (self._timeout.total_seconds() if self._timeout else 0)
        try:
            return self._connection.execute(with_colon(pieces), dict(values)).fetchall()
        except sqlite3.Error as error:
            if self._timeout is not None and error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
                raise timed_out(self._timeout) from error
            raise _refused(error) from error

    def _is_late(self) -> bool:
        return time.monotonic() > self._ends


def timed_out(timeout: timedelta) -> SemelError:
    """What to raise where a statement took too long."""
    return StatementTimedOut(
        f"A statement took longer than {timeout.total_seconds():g} s and was ended.",
        holds="Nothing was changed.",
        remedy="Narrow it with --since and --until, raise --timeout, or run what --sql prints on a replica.",
    )


def _lost(error: Exception) -> SemelError:
    return DatabaseUnreachable(
        f"The connection to the database was lost: {_first_line(error)}.",
        remedy="Check that the server runs.",
    )


def _refused(error: Exception) -> SemelError:
    return QueryRefused(
        f"The database refused: {_first_line(error)}.",
        holds="Nothing was changed.",
        remedy="Names are taken exactly as they are written, capital letters too. Check --table, --reference and "
        "--time; a time that is a number needs --time-unit; what else does not fit, put into a view.",
    )


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
