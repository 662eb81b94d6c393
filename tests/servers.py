"""The PostgreSQL servers that tests run on.

One server is shared by all processes of a test run: whoever needs it first starts it, and a keeper process
ends it with the run, however that ends. Each test gets its own database, a copy of one migrated template.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from semel.embedded import THROWAWAY_SETTINGS, EmbeddedServer
from semel.store.migrate import migrate_database

TEST_SETTINGS = MappingProxyType({**THROWAWAY_SETTINGS, "max_connections": "300"})
TEMPLATE = "semel_template"
KEEPER = """
import pathlib, shutil, sys
from semel.embedded import EmbeddedServer
sys.stdin.read()
EmbeddedServer(pathlib.Path(sys.argv[1], "postgres")).destroy()
shutil.rmtree(sys.argv[1])
"""


def make_server(directory: Path, **options: Any) -> EmbeddedServer:
    """A server with settings for tests, not started; the programs are ``SEMEL_TEST_PG_BIN``, if set."""
    chosen = {"bin_directory": os.environ.get("SEMEL_TEST_PG_BIN") or None, "settings": TEST_SETTINGS}
    return EmbeddedServer(directory, **{**chosen, **options})


def execute(url: str, statement: str) -> None:
    """One statement, outside a transaction."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


class Keeper:
    """A process that destroys the run's shared server when this one lets go of it or dies."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="semel-tests-"))
        self._process = subprocess.Popen(
            [sys.executable, "-c", KEEPER, str(self.directory)], stdin=subprocess.PIPE, start_new_session=True
        )

    def finish(self) -> None:
        """Return when the server and its directory are gone."""
        self._process.communicate(timeout=90)


@dataclass(frozen=True)
class SharedServer:
    """The server of the whole test run."""

    server: EmbeddedServer

    @classmethod
    def at(cls, directory: Path) -> SharedServer:
        """The running server with its template, both made by the first process that asks."""
        shared = cls(make_server(directory / "postgres"))
        with _once(directory / "template-made") as still_to_do:
            shared.server.start(background=True)
            if still_to_do:
                shared.drop_database(shared.server.url(TEMPLATE))
                execute(shared.server.url("postgres"), f"CREATE DATABASE {TEMPLATE} TEMPLATE template0")
                migrate_database(shared.server.url(TEMPLATE))
        return shared

    def create_database(self, *, template: str | None = TEMPLATE) -> str:
        """The URL of a new database: migrated, or empty with ``template=None``."""
        name = f"test_{uuid.uuid4().hex[:16]}"
        execute(self.server.url("postgres"), f"CREATE DATABASE {name} TEMPLATE {template or 'template0'}")
        return self.server.url(name)

    def drop_database(self, url: str) -> None:
        """Drop it, whoever is still connected."""
        name = conninfo_to_dict(url)["dbname"]
        execute(self.server.url("postgres"), f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@contextmanager
def _once(mark: Path) -> Iterator[bool]:
    """Hold a lock between the processes of the run; yields whether no body has ended well before."""
    with mark.open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield mark.stat().st_size == 0
        file.write("done\n")
