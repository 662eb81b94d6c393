"""The gem's own specs, over the three databases of the run."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.guard.conftest import make_database, mariadb

ROOT = Path(__file__).parent.parent.parent

__all__ = ["make_database", "mariadb"]


def environment(make: Callable[[str], Any]) -> dict[str, str]:
    """Where the specs find their databases."""
    server, name = make("mysql")
    return {
        "SEMEL_SPEC_POSTGRESQL": make("postgresql"),
        "SEMEL_SPEC_MYSQL": server.url(name),
        "SEMEL_SPEC_SQLITE": f"sqlite3:///{make('sqlite')}",
    }


def test_every_spec_passes(make_database: Callable[[str], Any]) -> None:
    rspec = shutil.which("rspec")
    if rspec is None:
        if os.environ.get("CI"):
            pytest.fail("RSpec is not installed: apt-get install ruby-rspec")
        pytest.skip("RSpec is not installed (Debian: apt-get install ruby-rspec)")
    done = subprocess.run(
        [rspec, "-I", "lib", "-I", "spec", *os.environ.get("SEMEL_SPEC_ARGS", "").split()],
        cwd=ROOT / "ruby",
        env={**os.environ, **environment(make_database)},
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
    assert " 0 failures" in done.stdout
