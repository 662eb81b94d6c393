"""The guard's own connections from a Django alias: made as Django makes them, but not the one of the calling thread."""

from __future__ import annotations

import copy

from django.db import Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.connection import ConnectionDoesNotExist

from semel.errors import ConfigurationError
from semel.sql import Catalogue
from semel.store.drivers import dbapi
from semel.store.drivers.django_driver import DjangoSession
from semel.store.origins import Home
from semel.store.own_sessions import ByHand, OwnSession
from semel.store.own_sources import Source, prepare
from semel.store.statement import Rows, Statement


class OwnDjangoSession(ByHand, DjangoSession):
    """A `DatabaseWrapper` of the guard's own, in autocommit; any thread may use it, one at a time."""

    wraps = False

    def execute(self, statement: Statement) -> Rows:
        if self.wraps and not self._inside:
            with self.transaction():
                return super().execute(statement)
        return super().execute(statement)

    def run_text(self, text: str) -> None:
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(text)
        except Error as error:
            self._reraise(error)

    def is_clean(self) -> bool:
        return not self._inside and self.connection.connection is not None

    def is_alive(self) -> bool:
        return bool(self.connection.is_usable())

    def close(self) -> None:
        self.connection.close()


def source_of(alias: str) -> Source:
    """For an alias of DATABASES."""
    try:
        vendor = connections[alias].vendor
    except ConnectionDoesNotExist:
        raise ConfigurationError(
            f"{alias!r} is no connection in Django's DATABASES.",
            remedy=f"There are: {', '.join(map(repr, connections))}.",
        ) from None

    def open_(catalogue: Catalogue) -> OwnSession:
        connection = _own_connection(alias)
        try:
            connection.connect()
        except Error as error:
            dbapi.reraise(error, lost=True)
        return prepare(OwnDjangoSession(alias, catalogue, connection=connection))

    if vendor not in ("postgresql", "mysql", "sqlite"):
        raise ConfigurationError(
            f"The guard does not keep records in {vendor}.",
            remedy="Use PostgreSQL, MySQL, MariaDB or SQLite.",
        )
    name = str(connections[alias].settings_dict["NAME"]) if vendor == "sqlite" else None
    return Source(vendor, open_, home=Home(made_by=lambda: alias, file=name))


def _own_connection(alias: str) -> BaseDatabaseWrapper:
    connection = connections.create_connection(alias)
    connection.settings_dict = copy.deepcopy(connection.settings_dict)
    connection.settings_dict["OPTIONS"].pop(
        "pool", None
    )  # the caller's pool: a pool of one would wait for ever
    connection.settings_dict["AUTOCOMMIT"] = True
    connection.settings_dict["ATOMIC_REQUESTS"] = False
    connection.inc_thread_sharing()
    return connection
