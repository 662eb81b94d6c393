"""Databases with the guard's tables, and every kind of connection to them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.guard import mariadb as servers
from tests.guard.mariadb import MariaDB
from tests.guard.places import MAKERS, Place
from tests.guard.stored import Stored
from tests.servers import SharedServer
from tests.support.keeping import run_directory

from semel.core.effects import Hold
from semel.store.guard_request import Request
from semel.store.guard_tables import create_tables

DIALECTS = ("postgresql", "mysql", "sqlite")


@pytest.fixture(scope="session")
def mariadb(request: pytest.FixtureRequest) -> MariaDB:
    """The MariaDB server of the whole run; never stop it."""
    return servers.shared(*run_directory(request))


@pytest.fixture(scope="session")
def own_mariadb() -> MariaDB:
    """A MariaDB server of this process's own, whose settings a test may change; a lock's time-out ends transactions there."""
    return servers.own("--innodb-rollback-on-timeout")


@pytest.fixture(scope="module")
def make_database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Any]]:
    """Makes a database of a dialect, with the guard's tables."""
    ending: list[Callable[[], None]] = []

    def make(dialect: str) -> Any:
        if dialect == "postgresql":
            server: SharedServer = request.getfixturevalue("shared_server")
            url = server.create_database()
            ending.append(lambda: server.drop_database(url))
            return url
        if dialect == "mysql":
            other: MariaDB = request.getfixturevalue("mariadb")
            name = other.create_database()
            create_tables(other.url(name))
            ending.append(lambda: other.drop_database(name))
            return (other, name)
        path = tmp_path_factory.mktemp("sqlite") / "semel.db"
        create_tables(path)
        return path

    yield make
    for end in ending:
        end()


@pytest.fixture(scope="module", params=list(MAKERS))
def place(request: pytest.FixtureRequest, make_database: Callable[[str], Any]) -> Iterator[Place]:
    """Each kind of connection in its turn."""
    dialect, make = MAKERS[request.param]
    made = make(make_database(dialect))
    yield made
    made.close()


@pytest.fixture(scope="module", params=DIALECTS)
def database(request: pytest.FixtureRequest, make_database: Callable[[str], Any]) -> Iterator[Place]:
    """Each database in its turn, over its plainest driver."""
    plainest = {"postgresql": "psycopg", "mysql": "pymysql", "sqlite": "sqlite3"}[request.param]
    made = MAKERS[plainest][1](make_database(request.param))
    yield made
    made.close()


def _stored(place: Place) -> Iterator[Stored]:
    looked = Stored.at(place.dialect, place.where)
    yield looked
    looked.close()


@pytest.fixture
def stored(place: Place) -> Iterator[Stored]:
    """What is stored at ``place``."""
    yield from _stored(place)


@pytest.fixture
def stored_there(database: Place) -> Iterator[Stored]:
    """What is stored in ``database``."""
    yield from _stored(database)


def make_request(dialect: str, **options: Any) -> Request:
    """An attempt at an operation of its own."""
    given: dict[str, Any] = {
        "scope": "",
        "job_type": "charge",
        "key": secrets.token_hex(32),
        "token": secrets.token_hex(16),
        "reference": secrets.token_hex(8),
        "effect": Hold(),
        "lease": timedelta(seconds=60),
        "longest_run": timedelta(seconds=10),
        "dialect": dialect,
        "fingerprint": "f" * 64,
    }
    return Request(**{**given, **options})
