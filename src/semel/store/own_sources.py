"""How the guard opens a connection of its own, from what people give it."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from semel.errors import ConfigurationError, DatabaseUnreachable, UnsafeClaim
from semel.sql import Catalogue
from semel.store.connect import connect, connect_async
from semel.store.open_transactions import is_django_alias
from semel.store.origins import Home, asyncpg_host, dsn_address, mysql_address
from semel.store.own_sessions import (
    AsyncOwnPsycopgSession,
    AsyncOwnSession,
    OwnMysqlSession,
    OwnPsycopgSession,
    OwnSession,
    make_sqlite,
)
from semel.store.pools import Database
from semel.store.statement import Statement


@dataclass(frozen=True, slots=True)
class Source:
    """One kind of connection. Without ``open_async`` the sync one serves asyncio too; without ``open`` only asyncio."""

    dialect: str
    open: Callable[[Catalogue], OwnSession] | None
    open_async: Callable[[Catalogue], Awaitable[AsyncOwnSession]] | None = None
    home: Home = field(default_factory=Home)
    """Where they lead, as far as that is known without connecting."""


_TAKEN: Final = (
    "Give a DSN (postgresql://, mysql://, sqlite:///path), the path of a SQLite file, a psycopg or asyncpg pool, "
    "a SQLAlchemy engine, session or connection, a Django alias, or a semel application."
)
_SETTINGS: Final = MappingProxyType(
    {
        "postgresql": (),  # its statements set their own lock_timeout: a setting of the session leaks through a pooler
        "mysql": (
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "SET SESSION innodb_lock_wait_timeout = 1",
        ),
        "sqlite": ("PRAGMA busy_timeout = 500",),
    }
)
_MYSQL_OPTIONS: Final = MappingProxyType({"charset": "utf8mb4", "connect_timeout": 10, "autocommit": True})
_READ_COMMITTED: Final = ("read committed", "read uncommitted")


def find_source(target: object) -> Source:
    """Where ``target`` leads, and how to connect there."""
    roots = {cls.__module__.partition(".")[0] for cls in type(target).__mro__}
    if isinstance(target, str):
        return _from_text(target)
    if isinstance(target, Path):
        return sqlite_source(str(target))
    if "sqlalchemy" in roots:
        from semel.store.drivers.own_sqlalchemy import source_of

        found = source_of(target)
        if found is not None:
            return found
    if "django" in roots and hasattr(target, "alias"):
        return _django(str(target.alias))
    if "sqlite3" in roots:
        return sqlite_source(_file_of(target))
    if "pymysql" in roots and hasattr(target, "unix_socket"):
        return _pymysql_source(target)
    dsn = _dsn_of(target, roots)
    if dsn is None:
        raise ConfigurationError(
            f"The guard got a {type(target).__module__}.{type(target).__qualname__}, which leads to no database.",
            remedy=_TAKEN,
        )
    return postgresql_source(dsn)


def prepare(session: OwnSession) -> OwnSession:
    """Set a new connection up, and refuse a server that takes no writes."""
    try:
        for text in _SETTINGS[session.dialect]:
            session.run_text(text)
        session.wraps = _needs_transactions(session.execute(Statement("guard/read_only"))[0])
    except BaseException:
        session.close()
        raise
    return session


async def prepare_async(session: AsyncOwnSession) -> AsyncOwnSession:
    """`prepare`, for asyncio."""
    try:
        for text in _SETTINGS[session.dialect]:
            await session.run_text(text)
        rows = await session.execute(Statement("guard/read_only"))
        session.wraps = _needs_transactions(rows[0])
    except BaseException:
        await session.close()
        raise
    return session


def postgresql_source(dsn: Callable[[], str]) -> Source:
    """Over psycopg, sync and async."""

    def open_(catalogue: Catalogue) -> OwnSession:
        connection = connect(dsn(), catalogue, name="semel guard").connection
        connection.prepare_threshold = None
        connection.isolation_level = _read_committed()
        return prepare(OwnPsycopgSession(connection, catalogue))

    async def open_async(catalogue: Catalogue) -> AsyncOwnSession:
        connection = (await connect_async(dsn(), catalogue, name="semel guard")).connection
        connection.prepare_threshold = None
        await connection.set_isolation_level(_read_committed())
        return await prepare_async(AsyncOwnPsycopgSession(connection, catalogue))

    return Source("postgresql", open_, open_async, Home(address=lambda: dsn_address(dsn())))


def sqlite_source(path: str, *, uri: bool = False) -> Source:
    """A file; in memory each connection would have records of its own."""
    if path in ("", ":memory:"):
        raise ConfigurationError(
            "The guard cannot use a SQLite database in memory: its own connection would see another one.",
            remedy="Give the path of a file.",
        )
    return Source(
        "sqlite", lambda catalogue: prepare(make_sqlite(path, catalogue, uri=uri)), home=Home(file=path)
    )


def mysql_source(url: str) -> Source:
    """Over PyMySQL, or mysqlclient where that is named (mysql+mysqldb://) or the only one."""
    return _mysql_source(*mysql_options(url))


def mysql_options(url: str) -> tuple[dict[str, Any], str]:
    """What a MySQL URL says to connect with, and the driver that it names, if any."""
    parts = urlsplit(url)
    options: dict[str, Any] = {
        "host": parts.hostname or "localhost",
        "port": parts.port or 3306,
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "database": unquote(parts.path.lstrip("/")),
        **_MYSQL_OPTIONS,
    }
    for name, value in parse_qsl(parts.query):
        if name not in ("unix_socket", "charset", "connect_timeout", "ssl_ca", "ssl_cert", "ssl_key"):
            raise ConfigurationError(
                f"The MySQL URL has the option {name!r}, which the guard does not know.",
                remedy="Give a SQLAlchemy engine that connects with it.",
            )
        options[name] = int(value) if name == "connect_timeout" else value
    return options, parts.scheme.partition("+")[2]


def connect_mysql(options: dict[str, Any], wanted: str) -> Any:
    """A connection of PyMySQL's or mysqlclient's. Raises `DatabaseUnreachable`."""
    module = _mysql_module(wanted)
    given = options if module.__name__ == "pymysql" else _for_mysqlclient(options)
    try:
        return module.connect(**given)
    except module.Error as error:
        raise DatabaseUnreachable(
            f"Could not connect to the database: {error}.",
            remedy="Check the URL and that the server runs.",
        ) from error


def _mysql_source(options: dict[str, Any], wanted: str) -> Source:
    def open_(catalogue: Catalogue) -> OwnSession:
        return prepare(OwnMysqlSession(connect_mysql(options, wanted), catalogue))

    address = mysql_address(options["host"], options["port"], options.get("unix_socket"))
    return Source("mysql", open_, home=Home(address=lambda: address))


def _pymysql_source(connection: Any) -> Source:
    """As a connection of PyMySQL's was made; mysqlclient's do not tell."""
    encrypts = getattr(connection, "_ssl_required", connection.ssl)  # newer ones do where they can, unasked
    if encrypts:
        raise ConfigurationError(
            "The guard cannot read how this PyMySQL connection was encrypted.",
            remedy="Give the guard a mysql:// URL with its options, or a SQLAlchemy engine.",
        )
    options = {
        "host": connection.host,
        "port": connection.port,
        "user": connection.user,
        "password": connection.password,
        "database": connection.db,
        **_MYSQL_OPTIONS,
    }
    if connection.unix_socket:
        options["unix_socket"] = connection.unix_socket
    return _mysql_source(options, "pymysql")


def _for_mysqlclient(options: dict[str, Any]) -> dict[str, Any]:
    """mysqlclient takes the files of TLS together; PyMySQL each by its name."""
    files = {name.removeprefix("ssl_"): options[name] for name in options if name.startswith("ssl_")}
    rest = {name: value for name, value in options.items() if not name.startswith("ssl_")}
    return rest | ({"ssl": files} if files else {})


def _mysql_module(wanted: str) -> Any:
    if wanted not in ("", "pymysql", "mysqldb"):
        raise ConfigurationError(
            f"The guard does not connect over {wanted!r}.",
            remedy="Write mysql+pymysql:// or mysql+mysqldb://.",
        )
    if wanted != "mysqldb":
        try:
            import pymysql
        except ImportError:
            pass
        else:
            return pymysql
    try:
        import MySQLdb
    except ImportError as error:
        raise ConfigurationError(
            "The guard needs PyMySQL to connect to MySQL.", remedy="Run: pip install 'semel[mysql]'"
        ) from error
    return MySQLdb


def _from_text(text: str) -> Source:
    scheme = re.match(r"([a-z0-9]+(?:\+\w+)?)://", text)
    if scheme is None:
        return _from_word(text)
    name = scheme.group(1).partition("+")[0]
    if name in ("postgresql", "postgres"):
        return postgresql_source(lambda: text)
    if name in ("mysql", "mariadb"):
        return mysql_source(text)
    if name == "sqlite":
        path = text[scheme.end() :]
        return sqlite_source(unquote(path[1:]) if path.startswith("/") else "")
    raise ConfigurationError(f"The guard knows no database called {name!r}.", remedy=_TAKEN)


def _from_word(text: str) -> Source:
    """A Django alias, a libpq string, or the path of a file; a path has a slash, a dot or a file behind it."""
    if is_django_alias(text):
        return _django(text)
    if text.startswith("file:"):
        return sqlite_source(text, uri=True)
    if "=" in text and not Path(text).exists():
        return postgresql_source(lambda: text)
    if os.sep in text or "." in text or text == ":memory:" or Path(text).exists():
        return sqlite_source(text)
    raise ConfigurationError(
        f"{text!r} is no DSN, no path of a file and no alias of Django's that is set up.", remedy=_TAKEN
    )


def _django(alias: str) -> Source:
    from semel.store.drivers.own_django import source_of

    return source_of(alias)


def _dsn_of(target: Any, roots: set[str]) -> Callable[[], str] | None:
    """The conninfo behind a pool, a connection or an application of semel's own."""
    if isinstance(target, Database):
        return target.url
    if isinstance(getattr(target, "database", None), Database):
        return target.database.url  # type: ignore[no-any-return]
    if "psycopg_pool" in roots:
        return _dsn_of_psycopg_pool(target)
    if "psycopg" in roots and hasattr(target, "info"):
        return _dsn_of_psycopg(target)
    if "asyncpg" in roots:
        return _dsn_of_asyncpg(target)
    return None


def _dsn_of_psycopg(connection: Any) -> Callable[[], str]:
    from psycopg.conninfo import make_conninfo

    dsn, password = connection.info.dsn, connection.info.password
    return lambda: make_conninfo(dsn, **({"password": password} if password else {}))


def _dsn_of_psycopg_pool(pool: Any) -> Callable[[], str]:
    from psycopg.conninfo import make_conninfo

    not_libpq = ("autocommit", "prepare_threshold", "context", "row_factory", "cursor_factory")
    given = pool.kwargs if isinstance(pool.kwargs, dict) else {}
    extra = {name: value for name, value in given.items() if name not in not_libpq}
    conninfo = pool.conninfo
    if not isinstance(conninfo, str):
        raise ConfigurationError(
            "The guard cannot read where this psycopg pool connects to.", remedy="Give the guard the DSN."
        )
    return lambda: make_conninfo(conninfo, **extra)


def _dsn_of_asyncpg(pool: Any) -> Callable[[], str] | None:
    from psycopg.conninfo import make_conninfo

    if hasattr(pool, "is_in_transaction"):
        return _dsn_of_asyncpg_connection(getattr(pool, "_con", pool))
    arguments = getattr(pool, "_connect_args", None)
    if arguments is None:
        return None
    named = dict(getattr(pool, "_connect_kwargs", {}))
    dsn = (arguments[0] if arguments else named.pop("dsn", None)) or ""
    names = {"host": "host", "port": "port", "user": "user", "password": "password", "database": "dbname"}
    extra = {names[name]: value for name, value in named.items() if name in names and value is not None}
    unreadable = named.get("ssl") is not None or any(
        not isinstance(each, str | int) for each in extra.values()
    )
    if unreadable or not isinstance(dsn, str):
        raise ConfigurationError(
            "The guard cannot read where this asyncpg pool connects to.", remedy="Give the guard the DSN."
        )
    return lambda: make_conninfo(dsn, **extra)


def _dsn_of_asyncpg_connection(connection: Any) -> Callable[[], str]:
    """What it was made with; its certificates cannot be read."""
    from psycopg.conninfo import make_conninfo

    params, address = connection._params, asyncpg_host(connection)  # noqa: SLF001
    mode = getattr(getattr(params, "sslmode", None), "name", "prefer").replace("_", "-")
    if address is None or mode.startswith("verify") or not isinstance(params.password, str | None):
        raise ConfigurationError(
            "The guard cannot read how this asyncpg connection was made.", remedy="Give the guard the DSN."
        )
    named = {"user": params.user, "password": params.password, "dbname": params.database, "sslmode": mode}
    given = {name: value for name, value in named.items() if value is not None}
    return lambda: make_conninfo(host=address[0], port=address[1], **given)


def _file_of(connection: Any) -> str:
    rows = connection.execute("PRAGMA database_list").fetchall()
    return next((str(row[2]) for row in rows if row[1] == "main"), "")


def _needs_transactions(row: tuple[Any, ...]) -> bool:
    """Refuses a server that takes no writes; whether a statement by itself gets an isolation that is too strict."""
    if row[0] is None or int(row[0]):
        raise UnsafeClaim(
            "The guard's connection leads to a server that takes no writes, such as a read replica.",
            holds="Nothing was claimed.",
            remedy="Give the guard the primary server.",
        )
    return len(row) > 1 and row[1] not in _READ_COMMITTED


def _read_committed() -> Any:
    from psycopg import IsolationLevel

    return IsolationLevel.READ_COMMITTED
