"""The public signatures, as mypy --strict sees them from outside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def test_callers_signatures_lose_exactly_what_the_worker_fills_in(tmp_path):
    done = subprocess.run(
        [
            sys.executable,
            *("-m", "mypy", "--strict", "--config-file", "", "--cache-dir", str(tmp_path)),
            *("--follow-imports", "silent", str(HERE / "signatures.py")),
        ],
        capture_output=True,
        text=True,
        env={"MYPYPATH": str(HERE.parent.parent / "src"), "PATH": ""},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
