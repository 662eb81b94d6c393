"""Connections of semel's own: for workers, upkeep and the CLI. Callers' connections come in through `sessions`."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

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
            remedy="Write it like postgresql://user:password@host:5432/database",
        ) from error
    return make_conninfo(**(dict(_DEFAULTS) | extra | {key: str(value) for key, value in given.items()}))


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
    except psycopg.OperationalError as error:
        raise _unreachable(error) from error
    return PsycopgSession(connection, catalogue, watch)
