"""Sidekiq of this machine's Debian under the contract of all adapters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.brokers import Redis
from tests.adapters.contract import *  # noqa: F403
from tests.adapters.rig import Rig
from tests.adapters.sidekiq_fixtures import make_rig, redis_server
from tests.guard.conftest import make_database

__all__ = ["make_database", "redis_server"]


@pytest.fixture
def rig(make_database: Callable[[str], Any], redis_server: Redis, tmp_path: Path) -> Iterator[Rig]:
    with make_rig(make_database, redis_server, tmp_path) as made:
        yield made
