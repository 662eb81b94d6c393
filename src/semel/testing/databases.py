"""Databases for tests: copies of one migrated template, made and dropped in milliseconds."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, LiteralString, Self
from urllib.parse import quote, urlsplit

from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from semel.embedded import THROWAWAY_SETTINGS, EmbeddedServer
from semel.store.migrate import migrate_database
from semel.store.session import open_session

VARIABLE: Final = "SEMEL_TEST_DATABASE_URL"
"""A server for tests that runs already; its role must be allowed to create databases."""

Prepare = Callable[[str], object]
"""Makes an application's own tables in the database at this URL."""


class TestDatabases:
    """Makes databases with semel's tables on one server, each a copy of a template, and drops them.

    ``prepare`` is called once, with the template's URL, to add the application's own tables. As a context
    manager it drops at the end whatever it made.
    """

    __test__ = False  # not a class of tests, whatever its name says to pytest

    def __init__(self, url: str, *, schema: str = "semel", prepare: Prepare | None = None) -> None:
        self.url = url
        """Of the database from which the others are made."""
        self.schema = schema
        self._prepare = prepare
        self._template: str | None = None
        self._made: set[str] = set()

    def create(self) -> str:
        """The URL of a new database. The first call makes the template."""
        if self._template is None:
            self._template = self._make_template()
        name = self._create(self._template)
        return at_database(self.url, name)

    def drop(self, url: str) -> None:
        """Drop a database that `create` made, whoever is still connected."""
        name = str(conninfo_to_dict(url)["dbname"])
        if name in self._made:
            self._execute("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)
            self._made.remove(name)

    def close(self) -> None:
        """Drop all that is left, the template too."""
        for name in sorted(self._made):
            self.drop(at_database(self.url, name))
        self._template = None

    def _make_template(self) -> str:
        name = self._create("template0")
        url = at_database(self.url, name)
        try:
            migrate_database(url, schema=self.schema)
            if self._prepare is not None:
                self._prepare(url)
            self._execute("ALTER DATABASE {} WITH ALLOW_CONNECTIONS false", name)
            with open_session(self.url, name="semel tests") as session:  # a copy needs it without visitors
                session.connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
                )
        except BaseException:
            self.drop(url)
            raise
        return name

    def _create(self, template: str) -> str:
        name = f"semel_test_{uuid.uuid4().hex[:16]}"
        self._execute("CREATE DATABASE {} TEMPLATE {}", name, template)
        self._made.add(name)
        return name

    def _execute(self, statement: LiteralString, *names: str) -> None:
        text = sql.SQL(statement).format(*map(sql.Identifier, names))
        with open_session(self.url, name="semel tests") as session:
            session.connection.execute(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def open_databases(*, schema: str = "semel", prepare: Prepare | None = None) -> Iterator[TestDatabases]:
    """On the server that ``SEMEL_TEST_DATABASE_URL`` names, else on a server of our own, gone at the end."""
    url = os.environ.get(VARIABLE)
    if url:
        with TestDatabases(url, schema=schema, prepare=prepare) as databases:
            yield databases
        return
    directory = Path(tempfile.mkdtemp(prefix="semel-test-"))
    server = EmbeddedServer(directory, settings=THROWAWAY_SETTINGS)
    try:
        server.start()
        yield TestDatabases(server.url("postgres"), schema=schema, prepare=prepare)
    finally:
        server.destroy()
        with suppress(FileNotFoundError):
            directory.rmdir()  # of a server that could not be made


def at_database(url: str, name: str) -> str:
    """The same server's database ``name``, in the form (URL or keywords) that ``url`` has."""
    if "://" not in url:
        return make_conninfo(url, dbname=name)
    return urlsplit(url)._replace(path="/" + quote(name, safe="")).geturl()
