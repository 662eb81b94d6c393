"""A run's folder is gone with it; one of a run that was killed goes with the next run, and a living one stays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from semel.replay.folders import own_folder

LIVING = """
import pathlib, sys
from semel.replay.folders import own_folder
with own_folder(pathlib.Path(sys.argv[1])) as folder:
    (folder / "room").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIVING, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        with own_folder(tmp_path) as mine:
            assert left.exists(), "its process lives"
            assert mine != left
        assert not mine.exists()
        process.kill()
    assert left.exists()

    with own_folder(tmp_path):
        assert not left.exists()
    assert list(tmp_path.iterdir()) == []


def test_what_is_somebody_elses_stays(tmp_path: Path) -> None:
    """Another program's folder of that name, and a link to one."""
    (tmp_path / "semel-replay-notes").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "lock").touch()
    (tmp_path / "semel-replay-link").symlink_to(tmp_path / "elsewhere")

    with own_folder(tmp_path):
        pass

    assert (tmp_path / "elsewhere" / "lock").exists()
    assert (tmp_path / "semel-replay-notes").exists()
