"""Servers for the tests of the launcher itself."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.servers import make_server

from semel.embedded import EmbeddedServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server that was not started yet, in a directory that is not there yet; gone after the test."""
    made = make_server(tmp_path / "home" / "postgres")
    yield made
    made.destroy()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """A running server for tests that leave it as it is."""
    made = make_server(tmp_path_factory.mktemp("running") / "postgres")
    made.start()
    yield made
    made.destroy()


@pytest.fixture
def unused_port() -> int:
    """A port of 127.0.0.1 that nobody listens on just now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port
