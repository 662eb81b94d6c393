"""What the tests of Sidekiq share: the run's Redis, and a rig on a database of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.brokers import Redis, shared_redis
from tests.adapters.sidekiq_rig import Ruby, SidekiqRig
from tests.adapters.stage import run_stage
from tests.support.keeping import run_directory


@pytest.fixture(scope="session")
def redis_server(request: pytest.FixtureRequest) -> Redis:
    """The Redis of the whole run; never stop it."""
    return shared_redis(*run_directory(request))


@contextmanager
def make_rig(
    make_database: Callable[[str], Any], redis_server: Redis, directory: Path, **options: Any
) -> Iterator[SidekiqRig]:
    """A rig on PostgreSQL; skips where there is no such Ruby, which under CI is a failure."""
    ruby = options.setdefault("ruby", Ruby())
    if not ruby.is_there():
        missing = "Sidekiq is not installed (Debian: apt-get install ruby-sidekiq)"
        if os.environ.get("CI") and ruby.root is None:
            pytest.fail(missing)
        pytest.skip(missing if ruby.root is None else f"{ruby.root} is not there: scripts/ruby-chroots.sh")
    url = make_database("postgresql")
    with run_stage() as stage:
        rig = SidekiqRig(
            stage, url, url, "postgresql", directory, redis_url=redis_server.new_url(), **options
        )
        try:
            yield rig
        finally:
            rig.close()
