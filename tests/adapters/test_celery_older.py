"""Celery 5.3 on Redis under the contract of all adapters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.celery_rig import older_python, redis_rig
from tests.adapters.contract import *  # noqa: F403
from tests.adapters.rig import Rig
from tests.guard.conftest import make_database

__all__ = ["make_database"]


@pytest.fixture
def rig(request: pytest.FixtureRequest, make_database: Callable[[str], Any], tmp_path: Path) -> Iterator[Rig]:
    """A short time-out: a worker is started when the messages of a killed one are past it."""
    python = older_python()
    setup = {"visibility": 5}
    with redis_rig(
        request, make_database("postgresql"), tmp_path, rounds=10, python=python, setup=setup
    ) as made:
        yield made
