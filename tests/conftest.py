"""Fixtures that every test may use: a database of its own, or a whole server that it may kill."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.servers import Keeper, SharedServer, make_server

from semel.embedded import EmbeddedServer
from semel.store.migrate import migrate_database

DIRECTORY = "semel_server_directory"
keeper_key = pytest.StashKey[Keeper]()


def pytest_configure(config: pytest.Config) -> None:
    """The process that leads the run keeps the shared server, which the first test that needs it starts."""
    if not hasattr(config, "workerinput"):
        config.stash[keeper_key] = Keeper()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell each process of pytest-xdist where the run's server is."""
    node.workerinput[DIRECTORY] = str(node.config.stash[keeper_key].directory)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the shared server with the run."""
    keeper = config.stash.get(keeper_key, None)
    if keeper is not None:
        keeper.finish()


@pytest.fixture(scope="session")
def shared_server(request: pytest.FixtureRequest) -> SharedServer:
    """The server of the whole run; never stop it, and change nothing in it but databases of your own."""
    told = getattr(request.config, "workerinput", {}).get(DIRECTORY)
    return SharedServer.at(Path(told) if told else request.config.stash[keeper_key].directory)


@pytest.fixture
def create_database(shared_server: SharedServer) -> Iterator[Callable[[], str]]:
    """Makes further databases with semel's tables, each dropped after the test."""
    made: list[str] = []

    def create() -> str:
        made.append(shared_server.create_database())
        return made[-1]

    yield create
    for url in made:
        shared_server.drop_database(url)


@pytest.fixture
def database_url(create_database: Callable[[], str]) -> str:
    """The URL of this test's own database, with semel's tables."""
    return create_database()


@pytest.fixture
def empty_database_url(shared_server: SharedServer) -> Iterator[str]:
    """The URL of this test's own database, with nothing in it."""
    url = shared_server.create_database(template=None)
    yield url
    shared_server.drop_database(url)


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server of this test's own, a child of this process, with semel's tables in database ``semel``.

    ``kill()`` it, ``stop()`` it, ``restart()`` it.
    """
    server = make_server(tmp_path / "postgres")
    try:
        migrate_database(server.start())
        yield server
    finally:
        server.destroy()
