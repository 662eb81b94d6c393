"""Where a connection leads, as far as its library tells without a question to the server.

Equal answers are enough to know that two connections lead to one database; different ones are not, since one server has
many names: then `semel.store.same_database` asks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

Address: TypeAlias = tuple[str, ...]
"""Dialect, host, port and the like, as they were given to the driver."""


@dataclass(frozen=True, slots=True)
class Origin:
    """One connection of a caller's."""

    driver: Any
    """The driver's own connection, below whatever library."""
    made_by: object = None
    """The pool of SQLAlchemy's or the alias of Django's that it comes from."""


@dataclass(frozen=True, slots=True)
class Home:
    """Where the guard's own connections lead. What is None is not known without asking."""

    address: Callable[[], Address | None] | None = None
    made_by: Callable[[], object] | None = None
    file: str | None = None
    """Of SQLite."""

    def knows(self, origin: Origin) -> bool:
        """Whether the caller's connection certainly leads to the same server, and on PostgreSQL to the same database."""
        if self.made_by is not None and origin.made_by is not None and self.made_by() == origin.made_by:
            return True
        found = address_of(origin.driver)
        return found is not None and self.address is not None and self.address() == found

    def has_file(self, path: str) -> bool:
        """Whether it is SQLite's file, by whatever path."""
        if not self.file or not path:
            return False
        try:
            return Path(_plain(self.file)).samefile(path)
        except OSError:
            return False


def origin_of(session: Any) -> Origin | Awaitable[Origin]:
    """Where the connection of a session comes from; to be awaited where the session is an asyncio one of SQLAlchemy's."""
    find = getattr(session, "find_origin", None)
    found: Origin | Awaitable[Origin] = Origin(session.connection) if find is None else find()
    return found


def address_of(driver: Any) -> Address | None:
    """Where a driver's connection was told to go; None where it does not say."""
    roots = {cls.__module__.partition(".")[0] for cls in type(driver).__mro__}
    if "psycopg" in roots:
        given = driver.info.get_parameters()
        return _postgresql(driver.info.host, given.get("hostaddr", ""), driver.info.port, driver.info.dbname)
    if "psycopg2" in roots:
        given = driver.info.dsn_parameters
        return _postgresql(driver.info.host, given.get("hostaddr", ""), driver.info.port, driver.info.dbname)
    if "asyncpg" in roots:
        return _address_of_asyncpg(driver)
    if "pymysql" in roots:
        return mysql_address(driver.host, driver.port, driver.unix_socket)
    return None


def dsn_address(dsn: str) -> Address | None:
    """Where libpq would go with it, the environment included; None for a service, whose file only libpq reads."""
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.pq import Conninfo

    given = {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value is not None}
    usual = {
        each.keyword.decode(): each.val.decode() for each in Conninfo.get_defaults() if each.val is not None
    }
    if "service" in given or "service" in usual:
        return None
    found = usual | given
    name = found.get("dbname") or found.get("user", "")
    return _postgresql(found.get("host"), found.get("hostaddr", ""), found.get("port"), name)


def mysql_address(host: str | None, port: int | None, socket: str | None) -> Address:
    """Of a server; which of its databases is in use can change with every statement."""
    return ("mysql", str(socket)) if socket else ("mysql", str(host), str(port))


def _postgresql(host: str | None, host_address: str, port: object, database: str) -> Address | None:
    return ("postgresql", host, host_address, str(port), database) if host else None


def _address_of_asyncpg(driver: Any) -> Address | None:
    where = asyncpg_host(driver)
    database = getattr(getattr(driver, "_params", None), "database", None)
    if database is None or where is None:
        return None
    return _postgresql(where[0], "", where[1], database)


def asyncpg_host(connection: Any) -> tuple[str, str] | None:
    """The host and port of an asyncpg connection, as libpq has them.

    It keeps this to itself; None where it no longer has it: then the servers are asked.
    """
    where = getattr(connection, "_addr", None)
    if isinstance(where, str):  # a socket: its directory is the host, its ending the port
        directory, _, name = where.rpartition("/")
        return directory, name.rpartition(".")[2]
    return None if where is None else (str(where[0]), str(where[1]))


def _plain(file: str) -> str:
    """The path of a file that was named as a path or as SQLite's URI."""
    return unquote(urlsplit(file).path) if file.startswith("file:") else file
