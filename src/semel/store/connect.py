"""Connections of semel's own: for workers, upkeep and the CLI. Callers' connections come in through `sessions`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Format

from semel.errors import ConfigurationError, DatabaseUnreachable
from semel.sql import Catalogue
from semel.store.drivers.psycopg3 import AsyncPsycopgSession, PsycopgSession
from semel.store.run import Watch

_DEFAULTS: Final = MappingProxyType(
    {
        "application_name": "semel",
        "connect_timeout": "10",
        "keepalives": "1",
        "keepalives_idle": "30",
        "keepalives_interval": "10",
        "keepalives_count": "3",
        "tcp_user_timeout": "30000",
    }
)


_SQLALCHEMY = re.compile(r"^(postgres(?:ql)?)\+\w+://")
"""The start of a URL as SQLAlchemy writes it, with the driver."""


def connection_string(url: str, **extra: str) -> str:
    """``url`` with what semel sets where the URL does not: a name, a time limit to connect, TCP keepalives."""
    cleaned = _SQLALCHEMY.sub(r"\1://", url, count=1)
    try:
        given = conninfo_to_dict(cleaned)
    except psycopg.ProgrammingError as error:
        raise ConfigurationError(
            f"This is not a PostgreSQL URL: {str(error).strip()}.",
            remedy="Write it like postgresql://user:password@host:5432/database. "
            "For the guard's tables on MariaDB or SQLite: semel migration sql --only guard --dialect mysql (or sqlite)",
        ) from error
    said = {key: str(value) for key, value in given.items()}
    return make_conninfo(**(dict(_DEFAULTS) | extra | said | {"client_encoding": "UTF8"}))


_FOR_HANDLERS: Final = "semel transaction"
"""Handlers get these connections: they read times and have limits as on any of their own."""
_FOR_WORKERS: Final = frozenset({"semel worker", "semel keeper", "semel supervisor"})
_TIMESTAMPTZ: Final = psycopg.adapters.types["timestamptz"].oid
_USUAL: Final = psycopg.adapters.get_loader(_TIMESTAMPTZ, Format.TEXT)
_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_LAST: Final = datetime.max.replace(tzinfo=UTC)
_ISO: Final = "SET datestyle TO ISO"
_NO_LIMITS: Final = """
SELECT set_config(name, '0', false) FROM pg_settings
WHERE name IN ('statement_timeout', 'lock_timeout') AND setting <> '0' AND source <> 'client'
  AND pg_backend_pid() = %s"""
"""Takes off what a role or database limits statements to, but not the URL. Behind a pooler, which gives out process
numbers of its own, nothing: the setting would reach others."""


class _Times(Loader):
    """A timestamptz; what no datetime can be, such as infinity, is the last or the first one."""

    def __init__(self, oid: int, context: Any = None) -> None:
        super().__init__(oid, context)
        assert _USUAL is not None
        self._usual = _USUAL(oid, context)

    def load(self, data: Buffer) -> datetime:
        try:
            loaded: datetime = self._usual.load(data)
        except (psycopg.DataError, ValueError, OverflowError):
            text = bytes(data)
            first = text.startswith((b"-", b"0001")) or text.endswith(b"BC")
            return _FIRST if first else _LAST
        return loaded


def _prepare(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], name: str) -> list[str]:
    """Make semel's own what can be made without asking; answers the statements to run."""
    if name != _FOR_HANDLERS:
        connection.adapters.register_loader("timestamptz", _Times)
    iso = (connection.info.parameter_status("DateStyle") or "ISO").startswith("ISO")
    limits = [_NO_LIMITS.replace("%s", str(connection.info.backend_pid))] if name in _FOR_WORKERS else []
    return ([] if iso else [_ISO]) + limits


def _unreachable(error: psycopg.Error) -> DatabaseUnreachable:
    hint = "\t"  # libpq indents what it asks the reader, such as whether the server runs
    lines = [line.strip() for line in str(error).splitlines() if not line.startswith(hint)]
    return DatabaseUnreachable(
        f"Could not connect to the database: {' '.join(lines).rstrip('.') or type(error).__name__}.",
        remedy="Check the URL (--database or SEMEL_DATABASE_URL) and that the server runs.",
    )


async def connect_async(
    url: str, catalogue: Catalogue, *, watch: Watch | None = None, name: str = "semel"
) -> AsyncPsycopgSession:
    """A connection of its own, in autocommit: each operation is a transaction. Raises `DatabaseUnreachable`."""
    try:
        connection: psycopg.AsyncConnection[Any] = await psycopg.AsyncConnection.connect(
            connection_string(url, application_name=name), autocommit=True
        )
        try:
            for statement in _prepare(connection, name):
                await connection.execute(statement.encode())
        except BaseException:
            await connection.close()
            raise
    except psycopg.OperationalError as error:
        raise _unreachable(error) from error
    return AsyncPsycopgSession(connection, catalogue, watch)


def connect(
    url: str, catalogue: Catalogue, *, watch: Watch | None = None, name: str = "semel"
) -> PsycopgSession:
    """`connect_async`, sync."""
    try:
        connection: psycopg.Connection[Any] = psycopg.Connection.connect(
            connection_string(url, application_name=name), autocommit=True
        )
        try:
            for statement in _prepare(connection, name):
                connection.execute(statement.encode())
        except BaseException:
            connection.close()
            raise
    except psycopg.OperationalError as error:
        raise _unreachable(error) from error
    return PsycopgSession(connection, catalogue, watch)
