"""Every kind of connection that the guard works over: its own ones, and the caller's for a `Row()`. All as sync calls."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy as sa
from django.conf import settings
from django.db import connections, transaction
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from semel.sql import Catalogue
from semel.store.own_connections import OwnSessions, open_own
from semel.store.run import run, run_async
from semel.store.sessions import async_session_for, sync_session_for


def need_mysqlclient() -> None:
    """mysqlclient is built where it is installed, so it may not be there. Skips; under CI that is a failure."""
    try:
        import MySQLdb  # noqa: F401
    except ImportError:
        how = "mysqlclient is not installed (Debian: apt-get install libmariadb-dev pkg-config; make clean setup)"
        if os.environ.get("CI"):
            pytest.fail(how)
        pytest.skip(how)


@dataclass
class Caller:
    """The caller's open transaction."""

    ask: Callable[[Any], Any]
    execute: Callable[[str], Any]
    commit: Callable[[], Any]
    rollback: Callable[[], Any]
    tx: Any
    """What a user gives to ``on(…)``."""
    runner: asyncio.Runner | None = None
    """Of an asyncio connection."""


@dataclass
class Place:
    """One kind of connection to one database."""

    name: str
    dialect: str
    where: Any
    """A PostgreSQL URL; a server and a database's name; a path."""
    ask: Callable[[Any], Any]
    """Runs an operation on the guard's own connection."""
    caller: Callable[..., Any]
    """Opens a transaction of the caller's: ``caller(isolation=None)``."""
    target: Any = None
    closing: list[Callable[[], Any]] = field(default_factory=list)

    def close(self) -> None:
        for close in self.closing:
            close()


def _sync(own: OwnSessions) -> Callable[[Any], Any]:
    def ask(operation: Any) -> Any:
        with own.session() as session:
            return run(operation, session)

    return ask


def _async(own: OwnSessions, runner: asyncio.Runner) -> Callable[[Any], Any]:
    async def ask(operation: Any) -> Any:
        async with own.async_session() as session:
            return await run_async(operation, session)

    return lambda operation: runner.run(ask(operation))


def _caller(tx: Any, catalogue: Catalogue, execute: Any, commit: Any, rollback: Any) -> Caller:
    session = sync_session_for(tx, catalogue)
    return Caller(lambda operation: run(operation, session), execute, commit, rollback, tx)


def _async_caller(runner: asyncio.Runner, tx: Any, execute: Any, commit: Any, rollback: Any) -> Caller:
    session = async_session_for(tx, Catalogue())

    def awaited(function: Any) -> Any:
        async def call(*given: Any) -> Any:
            return await function(*given)

        return lambda *given: runner.run(call(*given))

    return Caller(
        awaited(lambda operation: run_async(operation, session)),
        awaited(execute),
        awaited(commit),
        awaited(rollback),
        tx,
        runner,
    )


def psycopg_sync(url: str) -> Place:
    own = open_own(url)

    @contextmanager
    def caller(isolation: str | None = None) -> Iterator[Caller]:
        with psycopg.connect(url) as connection:
            if isolation is not None:
                connection.isolation_level = psycopg.IsolationLevel[isolation.upper().replace(" ", "_")]
            yield _caller(connection, Catalogue(), connection.execute, connection.commit, connection.rollback)

    return Place("psycopg", "postgresql", url, _sync(own), caller, url, [own.close])


def psycopg_async(url: str) -> Place:
    own, runner = open_own(url), asyncio.Runner()

    @contextmanager
    def caller(isolation: str | None = None) -> Iterator[Caller]:
        connection: Any = runner.run(psycopg.AsyncConnection.connect(url))
        if isolation is not None:
            level = psycopg.IsolationLevel[isolation.upper().replace(" ", "_")]
            runner.run(connection.set_isolation_level(level))
        yield _async_caller(runner, connection, connection.execute, connection.commit, connection.rollback)
        runner.run(connection.close())

    closing = [lambda: runner.run(own.aclose()), runner.close]
    return Place("psycopg-async", "postgresql", url, _async(own, runner), caller, url, closing)


def asyncpg_connection(url: str) -> Place:
    runner = asyncio.Runner()
    connection: Any = runner.run(_connect_asyncpg(url))
    session = async_session_for(connection, Catalogue())

    async def ask(operation: Any) -> Any:
        return await run_async(operation, session)

    @contextmanager
    def caller(isolation: str | None = None) -> Iterator[Caller]:
        other: Any = runner.run(_connect_asyncpg(url))
        begun = other.transaction(isolation=isolation and isolation.replace(" ", "_"))
        runner.run(begun.start())
        yield _async_caller(runner, other, other.execute, begun.commit, begun.rollback)
        runner.run(other.close())

    closing = [lambda: runner.run(connection.close()), runner.close]
    return Place(
        "asyncpg", "postgresql", url, lambda operation: runner.run(ask(operation)), caller, None, closing
    )


async def _connect_asyncpg(url: str) -> Any:
    return await asyncpg.connect(url)


def sqlalchemy_sync(
    name: str, dialect: str, url: Callable[[Any], str], opened: Callable[[Any], Any] = sa.Engine.connect
) -> Callable[[Any], Place]:
    """``opened`` makes the caller's connection or `Session` of an engine."""

    def make(where: Any) -> Place:
        engine = sa.create_engine(url(where), connect_args={"timeout": 0.5} if dialect == "sqlite" else {})
        own = open_own(engine)

        @contextmanager
        def caller(isolation: str | None = None) -> Iterator[Caller]:
            bound = engine
            if isolation is not None:
                bound = engine.execution_options(isolation_level=isolation.upper())
            with opened(bound) as connection:
                yield _caller(
                    connection,
                    Catalogue("semel", dialect),
                    lambda text: connection.execute(sa.text(text)),
                    connection.commit,
                    connection.rollback,
                )

        return Place(name, dialect, where, _sync(own), caller, engine, [own.close, engine.dispose])

    return make


def sqlalchemy_async(url: str, name: str = "sqlalchemy-async", opened: Any = AsyncEngine.connect) -> Place:
    runner = asyncio.Runner()
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
    own = open_own(engine)

    @contextmanager
    def caller(isolation: str | None = None) -> Iterator[Caller]:
        async def connect() -> Any:
            bound = engine
            if isolation is not None:
                bound = engine.execution_options(isolation_level=isolation.upper())
            return await opened(bound).__aenter__()

        connection = runner.run(connect())
        yield _async_caller(
            runner,
            connection,
            lambda text: connection.execute(sa.text(text)),
            connection.commit,
            connection.rollback,
        )
        runner.run(connection.close())

    closing = [lambda: runner.run(own.aclose()), lambda: runner.run(engine.dispose()), runner.close]
    return Place(name, "postgresql", url, _async(own, runner), caller, engine, closing)


def django_alias(
    name: str, dialect: str, database: Callable[[Any], dict[str, Any]]
) -> Callable[[Any], Place]:
    def make(where: Any) -> Place:
        alias = f"{name}-{uuid.uuid4().hex[:8]}"
        if not settings.configured:
            import django

            settings.configure(DATABASES={}, INSTALLED_APPS=[], USE_TZ=True)
            django.setup()
        defaults = {"ATOMIC_REQUESTS": False, "AUTOCOMMIT": True, "CONN_MAX_AGE": 0, "TIME_ZONE": None}
        more = {"CONN_HEALTH_CHECKS": False, "OPTIONS": {}, "TEST": {"MIGRATE": True, "NAME": None}}
        empty = dict.fromkeys(("NAME", "USER", "PASSWORD", "HOST", "PORT"), "")
        configured = defaults | more | empty | database(where)
        connections.settings[alias] = configured
        own = open_own(alias)

        @contextmanager
        def caller(isolation: str | None = None) -> Iterator[Caller]:
            alias = f"{name}-{uuid.uuid4().hex[:8]}"  # one alias is one connection in this thread
            connections.settings[alias] = configured
            if isolation is not None and dialect == "mysql":
                _django_execute(alias, f"SET SESSION TRANSACTION ISOLATION LEVEL {isolation.upper()}")
            ended: list[str] = []
            block = transaction.atomic(using=alias)
            block.__enter__()
            if isolation is not None and dialect == "postgresql":
                _django_execute(alias, f"SET TRANSACTION ISOLATION LEVEL {isolation.upper()}")

            def end(word: str) -> None:
                ended.append(word)
                if word == "rollback":
                    transaction.set_rollback(True, using=alias)
                block.__exit__(None, None, None)

            yield _caller(
                alias,
                Catalogue("semel", dialect),
                lambda text: _django_execute(alias, text),
                lambda: end("commit"),
                lambda: end("rollback"),
            )
            if not ended:
                end("rollback")
            connections[alias].close()

        return Place(name, dialect, where, _sync(own), caller, alias, [own.close, connections[alias].close])

    return make


def _django_execute(alias: str, text: str) -> Any:
    cursor = connections[alias].cursor()
    cursor.execute(text)
    return cursor


def mysql_connection(name: str, connect: Callable[[Any, str], Any]) -> Callable[[Any], Place]:
    """PyMySQL or mysqlclient; ``connect`` opens the caller's connection."""

    def make(where: Any) -> Place:
        server, database = where
        url = server.url(database)
        if name == "mysqlclient":
            need_mysqlclient()
            url = url.replace("mysql://", "mysql+mysqldb://")
        own = open_own(url)

        @contextmanager
        def caller(isolation: str | None = None) -> Iterator[Caller]:
            connection = connect(server, database)

            def execute(text: str) -> Any:
                cursor = connection.cursor()
                cursor.execute(text)
                return cursor

            if isolation is not None:
                execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {isolation.upper()}")
            yield _caller(
                connection, Catalogue("semel", "mysql"), execute, connection.commit, connection.rollback
            )
            connection.close()

        return Place(name, "mysql", where, _sync(own), caller, url, [own.close])

    return make


def connect_mysqlclient(server: Any, database: str, **options: Any) -> Any:
    need_mysqlclient()
    import MySQLdb

    return MySQLdb.connect(unix_socket=str(server.socket), user="root", database=database, **options)


def _sqlalchemy_mysqlclient(where: Any) -> Place:
    need_mysqlclient()
    return sqlalchemy_sync(
        "sqlalchemy-mysqlclient",
        "mysql",
        lambda where: where[0].url(where[1]).replace("mysql://", "mysql+mysqldb://"),
    )(where)


def sqlite3_path(where: Any) -> Place:
    own = open_own(where)

    @contextmanager
    def caller(isolation: str | None = None) -> Iterator[Caller]:
        connection = sqlite3.connect(where, timeout=0.5)
        yield _caller(
            connection,
            Catalogue("semel", "sqlite"),
            connection.execute,
            connection.commit,
            connection.rollback,
        )
        connection.close()

    return Place("sqlite3", "sqlite", where, _sync(own), caller, where, [own.close])


def sqlite3_async(where: Any) -> Place:
    place, runner = sqlite3_path(where), asyncio.Runner()
    own = open_own(where)
    place.name, place.ask = "sqlite3-async", _async(own, runner)
    place.closing += [lambda: runner.run(own.aclose()), runner.close]
    return place


def _django_postgresql(url: str) -> dict[str, Any]:
    found = psycopg.conninfo.conninfo_to_dict(url)
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    return {"ENGINE": "django.db.backends.postgresql"} | {
        name: str(found.get(key, "")) for name, key in names.items()
    }


def _django_mysql(where: Any) -> dict[str, Any]:
    need_mysqlclient()
    server, name = where
    return {
        "ENGINE": "django.db.backends.mysql",
        "NAME": name,
        "USER": "root",
        "OPTIONS": {"unix_socket": str(server.socket)},
    }


MAKERS: dict[str, tuple[str, Callable[[Any], Place]]] = {
    "psycopg": ("postgresql", psycopg_sync),
    "psycopg-async": ("postgresql", psycopg_async),
    "asyncpg": ("postgresql", asyncpg_connection),
    "sqlalchemy-psycopg": (
        "postgresql",
        sqlalchemy_sync(
            "sqlalchemy-psycopg",
            "postgresql",
            lambda url: url.replace("postgresql://", "postgresql+psycopg://"),
        ),
    ),
    "sqlalchemy-asyncpg": ("postgresql", sqlalchemy_async),
    "session-psycopg": (
        "postgresql",
        sqlalchemy_sync(
            "session-psycopg",
            "postgresql",
            lambda url: url.replace("postgresql://", "postgresql+psycopg://"),
            Session,
        ),
    ),
    "session-asyncpg": (
        "postgresql",
        lambda url: sqlalchemy_async(url, "session-asyncpg", AsyncSession),
    ),
    "django-postgresql": (
        "postgresql",
        django_alias("django-postgresql", "postgresql", _django_postgresql),
    ),
    "pymysql": ("mysql", mysql_connection("pymysql", lambda server, name: server.connect(name))),
    "mysqlclient": ("mysql", mysql_connection("mysqlclient", connect_mysqlclient)),
    "sqlalchemy-pymysql": (
        "mysql",
        sqlalchemy_sync(
            "sqlalchemy-pymysql",
            "mysql",
            lambda where: where[0].url(where[1]).replace("mysql://", "mysql+pymysql://"),
        ),
    ),
    "sqlalchemy-mysqlclient": ("mysql", _sqlalchemy_mysqlclient),
    "django-mysql": ("mysql", django_alias("django-mysql", "mysql", _django_mysql)),
    "sqlite3": ("sqlite", sqlite3_path),
    "sqlite3-async": ("sqlite", sqlite3_async),
    "sqlalchemy-sqlite": (
        "sqlite",
        sqlalchemy_sync("sqlalchemy-sqlite", "sqlite", lambda where: f"sqlite:///{where}"),
    ),
    "django-sqlite": (
        "sqlite",
        django_alias(
            "django-sqlite",
            "sqlite",
            lambda where: {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": str(where),
                "OPTIONS": {"timeout": 0.5},
            },
        ),
    ),
}
