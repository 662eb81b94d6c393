"""Django's connections: to PostgreSQL over psycopg 3 or 2; for the guard also to MySQL, MariaDB and SQLite.

In ``atomic`` the job is part of the block; outside, it commits at once, as each of Django's own writes does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from django.core.exceptions import ImproperlyConfigured
from django.db import Error, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.connection import ConnectionDoesNotExist, ConnectionProxy

from semel.errors import ConnectionRefused
from semel.sql import Catalogue
from semel.store.drivers import dbapi
from semel.store.drivers.refusals import wrong_database
from semel.store.origins import Origin
from semel.store.run import Watch
from semel.store.statement import Copy, Rows, Statement


class DjangoSession:
    """The connection of one alias, in the calling thread."""

    def __init__(
        self,
        alias: str,
        catalogue: Catalogue,
        watch: Watch | None = None,
        *,
        connection: BaseDatabaseWrapper | None = None,
    ) -> None:
        self.alias = alias
        self.connection = connections[alias] if connection is None else connection
        self.catalogue = catalogue
        self.watch = watch

    @property
    def dialect(self) -> str:
        return str(self.connection.vendor)

    @property
    def can_copy(self) -> bool:
        self.connection.ensure_connection()
        return dbapi.can_copy(self.connection.connection)

    def find_origin(self) -> Origin:
        """The driver's connection, and the alias."""
        self.connection.ensure_connection()
        return Origin(self.connection.connection, self.alias)

    def execute(self, statement: Statement) -> Rows:
        text = self.catalogue.text(statement.name, **statement.literals).named
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(text, dict(statement.parameters))
                return dbapi.answered(cursor, self.dialect)
        except Error as error:
            self._reraise(error)

    def copy(self, copy: Copy) -> Rows:
        try:
            with self.connection.wrap_database_errors:
                dbapi.copy_into(self.connection.connection, copy, self.catalogue)
        except Error as error:
            dbapi.reraise(error)
        return ()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        try:
            with transaction.atomic(using=self.alias):
                yield
        except Error as error:
            self._reraise(error)

    def _reraise(self, error: Exception) -> NoReturn:
        dbapi.reraise(error, connection=self.connection.connection)


def session_on(tx: Any, catalogue: Catalogue) -> DjangoSession | None:
    """A session on an alias or a connection; None for other objects of Django's.

    Raises ConnectionRefused for a connection that its alias does not lead to, since ``atomic`` goes by the
    alias.
    """
    if not isinstance(tx, str | ConnectionProxy | BaseDatabaseWrapper):
        return None
    alias = tx if isinstance(tx, str) else tx.alias
    try:
        found = connections[alias]
    except ImproperlyConfigured as error:
        raise ConnectionRefused(
            f"tx={tx!r} would be Django's connection, and Django is not set up: {error}",
            holds="Nothing was stored.",
            remedy="Set DJANGO_SETTINGS_MODULE and call django.setup() first.",
        ) from error
    except ConnectionDoesNotExist:
        raise ConnectionRefused(
            f"tx={tx!r} is no connection in Django's DATABASES.",
            holds="Nothing was stored.",
            remedy=f"There are: {', '.join(map(repr, connections))}.",
        ) from None
    if isinstance(tx, BaseDatabaseWrapper) and tx is not found:
        raise ConnectionRefused(
            f"tx= is Django's connection {alias!r} of another thread, or a copy of it.",
            holds="Nothing was stored.",
            remedy=f"Give the alias: tx={alias!r}.",
        )
    if found.vendor != catalogue.dialect:
        raise wrong_database(found, found.vendor, catalogue.dialect)
    return DjangoSession(alias, catalogue)
