"""Rivals on a database of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from tests.support.application import app as application
from tests.support.journal import VARIABLE, Journal
from tests.support.rivals import Rival

from semel import App


@pytest.fixture
def app(database_url: str) -> Iterator[App]:
    with application.with_database(database_url) as made:
        yield made


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    made = Journal(tmp_path / "journal")
    monkeypatch.setenv(VARIABLE, str(made.path))
    return made


@pytest.fixture
def rival(database_url: str) -> Iterator[Callable[[], Rival]]:
    """Makes rivals, each with a connection of its own."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(Rival(database_url)))


@pytest.fixture
def winner(rival: Callable[[], Rival]) -> Rival:
    return rival()


@pytest.fixture
def loser(rival: Callable[[], Rival]) -> Rival:
    return rival()
