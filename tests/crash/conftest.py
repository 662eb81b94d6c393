"""A journal, workers, and the application under test on a database of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.support.application import app as application
from tests.support.journal import VARIABLE, Journal
from tests.support.workers import Worker

from semel import App


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    """Where all handlers of this test write, whatever process they run in."""
    made = Journal(tmp_path / "journal")
    monkeypatch.setenv(VARIABLE, str(made.path))
    return made


@pytest.fixture
def app(database_url: str) -> Iterator[App]:
    """To enqueue with: ``app.jobs["quick"]``."""
    with application.with_database(database_url) as made:
        yield made


@pytest.fixture
def start_worker(database_url: str, tmp_path: Path, journal: Journal) -> Iterator[Callable[..., Worker]]:
    """Starts workers on this test's database; what is left of them is killed after it."""
    with ExitStack() as stack:

        def start(name: str = "worker", **options: Any) -> Worker:
            return stack.enter_context(Worker(database_url, tmp_path, name=name, **options))

        yield start
