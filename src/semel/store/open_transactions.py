"""Whether a caller's transaction is visibly open, by what each driver reliably tells.

An outside effect whose claim sits in an open transaction is refused: the transaction may roll back after the call was made.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def describe_open_transaction(tx: object) -> str | None:
    """What is open on a connection, a session or a Django alias, in words; None where nothing visibly is."""
    roots = {cls.__module__.partition(".")[0] for cls in type(tx).__mro__}
    if isinstance(tx, str) or "django" in roots:
        return _django(tx)
    if "sqlalchemy" in roots:
        return _sqlalchemy(tx)
    if "psycopg" in roots:
        return _when(_psycopg_open(tx), "the psycopg connection is in a transaction")
    if "asyncpg" in roots:
        asked = getattr(tx, "is_in_transaction", bool)  # a pool is in none
        return _when(bool(asked()), "the asyncpg connection is in a transaction")
    if "sqlite3" in roots:
        return _when(bool(tx.in_transaction), "the sqlite3 connection is in a transaction")  # type: ignore[attr-defined]
    if "pymysql" in roots or "MySQLdb" in roots:
        return _when(_mysql_open(tx), "the MySQL connection is in a transaction, or not in autocommit")
    return None


def is_django_alias(text: str) -> bool:
    """Whether a string names a database of Django's, where Django is in use and set up."""
    if "django.db" not in sys.modules:
        return False
    from django.core.exceptions import ImproperlyConfigured

    try:
        return text in sys.modules["django.db"].connections
    except ImproperlyConfigured:  # imported by somebody, and never set up
        return False


@contextmanager
def django_transaction(alias: str) -> Iterator[Any]:
    """A transaction on the connection that Django's ORM writes on, as ``transaction.atomic`` makes it."""
    from django.db import connections, transaction

    with transaction.atomic(using=alias):
        yield connections[alias]


def will_begin(tx: object) -> bool:
    """Whether the next write on it opens a transaction that is the caller's to commit, where none is open yet."""
    roots = {cls.__module__.partition(".")[0] for cls in type(tx).__mro__}
    if "psycopg" in roots:
        return not getattr(tx, "autocommit", True)
    if "sqlite3" in roots:
        from semel.store.drivers.sqlite_driver import begins_by_itself

        return begins_by_itself(tx)  # type: ignore[arg-type]
    return "sqlalchemy" in roots and not _autocommits(tx)


def _autocommits(tx: Any) -> bool:
    """Whether a connection or a session of SQLAlchemy's is set to AUTOCOMMIT: it begins in name only."""
    target = getattr(tx, "sync_session", None) or getattr(tx, "sync_connection", None) or tx
    bind = target if hasattr(target, "exec_driver_sql") else target.get_bind()
    engine = getattr(bind, "engine", bind)
    levels = [each.get_execution_options().get("isolation_level") for each in (bind, engine)]
    levels.append(getattr(engine.dialect, "_on_connect_isolation_level", None))
    return next((level for level in levels if level is not None), None) == "AUTOCOMMIT"


def in_atomic_block(tx: object) -> bool:
    """Whether a Django connection or alias is in an atomic block, one of a test's included."""
    connection = (
        sys.modules["django.db"].connections[tx] if isinstance(tx, str) and is_django_alias(tx) else tx
    )
    return bool(getattr(connection, "in_atomic_block", False))


def _when(is_open: bool, words: str) -> str | None:
    return words if is_open else None


def _psycopg_open(connection: Any) -> bool:
    """IDLE is the only status without one; ACTIVE in a pipeline hides what it will be."""
    return int(connection.info.transaction_status) != 0


def _mysql_open(connection: Any) -> bool:
    """With autocommit off the first statement opens one, which the server's flag does not show after a plain read; with it
    on, BEGIN does, which the flag shows."""
    from semel.store.drivers.mysql_driver import is_open

    return is_open(connection)


def _django(tx: Any) -> str | None:
    """An atomic block, or autocommit switched off. The blocks that Django's TestCase wraps around a test do not count."""
    connection: Any = tx
    if isinstance(tx, str):
        if not is_django_alias(tx):
            return None
        connection = sys.modules["django.db"].connections[tx]
    blocks = getattr(connection, "atomic_blocks", [])
    if any(not getattr(block, "_from_testcase", False) for block in blocks):
        return f"the Django connection {connection.alias!r} is in an atomic block"
    if connection.connection is not None and not blocks and not connection.get_autocommit():
        return f"the Django connection {connection.alias!r} has autocommit switched off"
    return None


def _sqlalchemy(tx: Any) -> str | None:
    """A session that has begun; for a connection what its driver says, since SQLAlchemy's own word is true in autocommit."""
    tx = (
        tx.registry() if hasattr(tx, "registry") else tx
    )  # a scoped session does not tell, the one in it does
    target = getattr(tx, "sync_session", None) or getattr(tx, "sync_connection", None) or tx
    if hasattr(target, "in_transaction") and not hasattr(target, "exec_driver_sql"):
        if not target.in_transaction():
            return None
        return "the SQLAlchemy session is in a transaction (a read is enough): call session.commit() first"
    if not hasattr(target, "connection"):
        return None
    driver = getattr(target.connection, "dbapi_connection", None)
    driver = getattr(driver, "driver_connection", None) or driver
    inner = describe_open_transaction(driver) if driver is not None else None
    return None if inner is None else f"the SQLAlchemy connection is in a transaction ({inner})"
