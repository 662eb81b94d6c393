"""Other versions of Sidekiq and Ruby under the contract, in root folders that ``scripts/ruby-chroots.sh`` makes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.brokers import Redis
from tests.adapters.contract import *  # noqa: F403
from tests.adapters.rig import Rig
from tests.adapters.sidekiq_fixtures import make_rig, redis_server
from tests.adapters.sidekiq_rig import ROOT, Ruby
from tests.guard.conftest import make_database

__all__ = ["make_database", "redis_server"]

FOLDER = Path(os.environ.get("SEMEL_RUBY_ROOTS", ROOT / ".venv" / "chroots"))
RELEASES = ("trixie", "forky")
"""Of Debian: Ruby 3.3 with Sidekiq 7.3, and with 8.1."""


@pytest.fixture(params=RELEASES)
def rig(
    request: pytest.FixtureRequest, make_database: Callable[[str], Any], redis_server: Redis, tmp_path: Path
) -> Iterator[Rig]:
    ruby = Ruby(FOLDER / request.param)
    with make_rig(make_database, redis_server, tmp_path, ruby=ruby, rounds=10) as made:
        yield made
