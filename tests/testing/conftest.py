"""An application of each test's own, on a database of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from semel import App


@pytest.fixture
def app(database_url: str) -> Iterator[App]:
    with App(database_url) as made:
        yield made
