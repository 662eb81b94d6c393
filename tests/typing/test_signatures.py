"""The public signatures, as mypy --strict sees them from outside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("module", ["signatures.py", "guarded.py", "sqs.py", "celery_tasks.py"])
def test_callers_signatures_lose_exactly_what_is_filled_in(tmp_path, module):
    done = subprocess.run(
        [
            sys.executable,
            *("-m", "mypy", "--strict", "--config-file", "", "--cache-dir", str(tmp_path)),
            *("--follow-imports", "silent", str(HERE / module)),
        ],
        capture_output=True,
        text=True,
        env={"MYPYPATH": str(HERE.parent.parent / "src"), "PATH": ""},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
