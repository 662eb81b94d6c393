"""The gem's own specs, over each database of the run, and over Redis."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.brokers import Redis
from tests.adapters.sidekiq_fixtures import redis_server
from tests.guard.conftest import make_database, mariadb

ROOT = Path(__file__).parent.parent.parent
LONGEST = 170

__all__ = ["make_database", "mariadb", "redis_server"]


def run_specs(folders: list[str], environment: dict[str, str]) -> str:
    """Run specs; what they print. ``SEMEL_SPEC_ARGS`` are further arguments of RSpec's."""
    rspec = shutil.which("rspec")
    if rspec is None:
        if os.environ.get("CI"):
            pytest.fail("RSpec is not installed: apt-get install ruby-rspec")
        pytest.skip("RSpec is not installed (Debian: apt-get install ruby-rspec)")
    done = subprocess.run(
        [rspec, "-I", "lib", "-I", "spec", *os.environ.get("SEMEL_SPEC_ARGS", "").split(), *folders],
        cwd=ROOT / "ruby",
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
    assert " 0 failures" in done.stdout
    return done.stdout


def test_decisions_and_keys_are_those_of_python() -> None:
    run_specs(["spec/core", "spec/store"], {})


def url_of(dialect: str, made: Any) -> str:
    """What ``make_database`` made, as the gem is told of it."""
    if dialect == "mysql":
        server, name = made
        return str(server.url(name))
    return str(made) if dialect == "postgresql" else f"sqlite3:///{made}"


@pytest.mark.parametrize("dialect", ["postgresql", "mysql", "sqlite"])
def test_the_guard(make_database: Callable[[str], Any], dialect: str) -> None:
    names = (f"SEMEL_SPEC_{dialect.upper()}", f"SEMEL_SPEC_OTHER_{dialect.upper()}")
    run_specs(["spec/guard"], {name: url_of(dialect, make_database(dialect)) for name in names})


def test_the_middleware(make_database: Callable[[str], Any], redis_server: Redis) -> None:
    environment = {
        "SEMEL_SPEC_POSTGRESQL": make_database("postgresql"),
        "SEMEL_SPEC_REDIS": redis_server.new_url(),
    }
    printed = run_specs(["spec/sidekiq"], environment)
    assert re.search(r"\b0 examples", printed) is None
