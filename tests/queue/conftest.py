"""An application on a database of the test's own, and a way to look at what is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from semel import App, Job


@pytest.fixture
def app(database_url: str) -> Iterator[App]:
    with App(database_url) as made:
        yield made


@pytest.fixture
def charge(app: App) -> Job[..., None]:
    @app.job
    def charge(order: int, note: str = "") -> None: ...

    return charge


@pytest.fixture
def ask(database_url: str) -> Callable[..., list[tuple[Any, ...]]]:
    """Run one statement on a connection of its own, and answer its rows."""

    def ask(statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(database_url, autocommit=True) as connection:
            cursor = connection.execute(statement, parameters)
            return cursor.fetchall() if cursor.description else []

    return ask
