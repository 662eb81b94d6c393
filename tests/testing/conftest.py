"""An application of each test's own, on a database of its own; and sub-runs of pytest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from semel import App

pytest_plugins = ["pytester"]


@pytest.fixture
def app(database_url: str) -> Iterator[App]:
    with App(database_url) as made:
        yield made
