"""The caller's connection, whatever library it came from, as a session that operations run on.

Nothing is imported that the caller's object does not show to be loaded: its classes name their library.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any, cast

from semel.errors import ConnectionRefused
from semel.sql import Catalogue
from semel.store.drivers.refusals import closed, wrong_database
from semel.store.run import AsyncSession, Session

_TAKEN = (
    "Give a psycopg 3 or asyncpg connection, a SQLAlchemy Connection, Session, AsyncConnection or "
    "AsyncSession, or a Django connection or its alias."
)


def session_for(tx: object, catalogue: Catalogue) -> Session | AsyncSession:
    """A session on the caller's connection; it runs inside the caller's transaction and never ends it.

    Raises ConnectionRefused for what is no connection, is closed, or does not lead to the catalogue's database.
    """
    roots = {cls.__module__.partition(".")[0] for cls in type(tx).__mro__}
    if "psycopg" in roots:
        found = _psycopg(tx, catalogue)
    elif "asyncpg" in roots:
        found = _asyncpg(tx, catalogue)
    elif "sqlalchemy" in roots:
        found = _sqlalchemy(tx, catalogue)
    elif "django" in roots or isinstance(tx, str):
        found = _django(tx, catalogue)
    elif "sqlite3" in roots:
        found = _sqlite(tx, catalogue)
    elif "pymysql" in roots or "MySQLdb" in roots:
        found = _mysql(tx, catalogue)
    else:
        found = None
    if found is None:
        raise ConnectionRefused(
            f"tx= is a {type(tx).__module__}.{type(tx).__qualname__}, no connection that semel knows.",
            holds="Nothing was stored.",
            remedy=_hint(tx) + _TAKEN,
        )
    if found.dialect != catalogue.dialect:
        raise wrong_database(tx, found.dialect, catalogue.dialect)
    return found


def sync_session_for(tx: object, catalogue: Catalogue) -> Session:
    """`session_for`, where the caller is sync. Raises ConnectionRefused for an async connection."""
    session = session_for(tx, catalogue)
    if inspect.iscoroutinefunction(session.execute):
        raise ConnectionRefused(
            f"tx= is a {type(tx).__qualname__}, which is for asyncio, in a sync call.",
            holds="Nothing was stored.",
            remedy="Write: await ….using(tx=…).aenqueue(…), or aenqueue_many.",
        )
    return cast("Session", session)


def async_session_for(tx: object, catalogue: Catalogue) -> AsyncSession:
    """`session_for`, where the caller is async. Raises ConnectionRefused for a sync connection."""
    session = session_for(tx, catalogue)
    if not inspect.iscoroutinefunction(session.execute):
        raise ConnectionRefused(
            f"tx= is {_name(tx)}, which is sync, in an async call.",
            holds="Nothing was stored.",
            remedy="Write: ….using(tx=…).enqueue(…) without await, or enqueue_many; in an async Django view, "
            "in the sync_to_async function that holds the transaction.",
        )
    return cast("AsyncSession", session)


def _psycopg(tx: Any, catalogue: Catalogue) -> Session | AsyncSession | None:
    import psycopg

    from semel.store.drivers.psycopg3 import AsyncPsycopgSession, PsycopgSession

    if isinstance(tx, psycopg.Cursor | psycopg.AsyncCursor):
        tx = tx.connection
    if isinstance(tx, psycopg.Connection | psycopg.AsyncConnection) and tx.closed:
        raise closed(tx)
    if isinstance(tx, psycopg.Connection):
        return PsycopgSession(tx, catalogue)
    if isinstance(tx, psycopg.AsyncConnection):
        return AsyncPsycopgSession(tx, catalogue)
    return None


def _asyncpg(tx: Any, catalogue: Catalogue) -> AsyncSession | None:
    from semel.store.drivers.asyncpg_driver import AsyncpgSession, is_connection

    return AsyncpgSession(tx, catalogue) if is_connection(tx) else None


def _sqlalchemy(tx: Any, catalogue: Catalogue) -> Session | AsyncSession | None:
    from semel.store.drivers.sqlalchemy_driver import session_on

    return session_on(tx, catalogue)


def _django(tx: Any, catalogue: Catalogue) -> Session | None:
    if "django" not in sys.modules:  # a string, and no Django that could know it
        return None
    from semel.store.drivers.django_driver import session_on

    return session_on(tx, catalogue)


def _sqlite(tx: Any, catalogue: Catalogue) -> Session | None:
    import sqlite3

    from semel.store.drivers.sqlite_driver import SqliteSession

    return SqliteSession(tx, catalogue) if isinstance(tx, sqlite3.Connection) else None


def _mysql(tx: Any, catalogue: Catalogue) -> Session | None:
    from semel.store.drivers.mysql_driver import MysqlSession, is_mysql

    return MysqlSession(tx, catalogue) if is_mysql(tx) else None


def can_copy(session: Session | AsyncSession) -> bool:
    """Whether the driver below can COPY; those that can in any case do not say so."""
    return bool(getattr(session, "can_copy", True))


def _name(tx: object) -> str:
    return f"Django's connection {tx!r}" if isinstance(tx, str) else f"a {type(tx).__qualname__}"


def _hint(tx: object) -> str:
    """What to do with the object that people give by mistake."""
    match type(tx).__name__:
        case "Engine" | "AsyncEngine":
            return "Begin a transaction on it and give its connection: with engine.begin() as connection. "
        case "ConnectionPool" | "AsyncConnectionPool" | "Pool":
            return "Take a connection from the pool and give that. "
        case "sessionmaker" | "async_sessionmaker":
            return "Give the session that it makes. "
    return ""
