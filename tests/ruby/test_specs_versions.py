"""The gem's specs on other versions of Ruby, Sidekiq, Rails and the drivers: the folders of ``scripts/ruby-chroots.sh``."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from tests.adapters.brokers import Redis
from tests.adapters.sidekiq_fixtures import redis_server
from tests.adapters.sidekiq_rig import Ruby
from tests.adapters.test_sidekiq_versions import FOLDER, RELEASES
from tests.guard.conftest import make_database, mariadb
from tests.ruby.test_specs import url_of

__all__ = ["make_database", "mariadb", "redis_server"]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("release", RELEASES)
def test_every_spec_passes(make_database: Callable[[str], Any], redis_server: Redis, release: str) -> None:
    ruby = Ruby(FOLDER / release)
    if not ruby.is_there():
        pytest.skip(f"{ruby.root} is not there: scripts/ruby-chroots.sh")
    environment = {
        f"SEMEL_SPEC_{prefix}{dialect.upper()}": url_of(dialect, make_database(dialect))
        for dialect in ("postgresql", "mysql", "sqlite")
        for prefix in ("", "OTHER_")
    } | {"SEMEL_SPEC_REDIS": redis_server.new_url()}
    done = subprocess.run(
        ruby.command(["env", "-C", "ruby", "rspec", "-I", "lib", "-I", "spec"]),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
    assert " 0 failures" in done.stdout
    assert "has no iterable jobs" not in done.stdout, "these versions have them"
