"""What is asked of a machine about processes: by /proc, and by ps where there is none, as on macOS."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.replay.judging import describe, run_replay
from tests.support.waiting import until

from semel.replay import peers, processes
from semel.replay.processes import descendants, state_of

SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]
PARENT = f"import subprocess; subprocess.run({SLEEPS!r})"


@pytest.fixture(params=["/proc", "ps"])
def told_by(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "ps":
        if shutil.which("ps") is None:
            pytest.skip("ps is not installed")
        monkeypatch.setattr(processes, "PROC", tmp_path / "none")
        monkeypatch.setattr(peers, "_TABLES", (tmp_path / "tcp", tmp_path / "tcp6"))
    return str(request.param)


def test_the_state_of_a_process(told_by: str) -> None:
    process = subprocess.Popen(SLEEPS)
    try:
        until(lambda: state_of(process.pid) in ("R", "S"), "it runs")
        process.send_signal(signal.SIGSTOP)
        until(lambda: state_of(process.pid) == "T", "it is stopped")
        process.send_signal(signal.SIGCONT)
        until(lambda: state_of(process.pid) in ("R", "S"), "it runs again")
        process.kill()
        until(lambda: state_of(process.pid) == "", "it has ended, though nobody has reaped it")
    finally:
        process.kill()
        process.wait(20)
    assert state_of(process.pid) == ""
    assert state_of(os.getpid()) in ("R", "S")
    assert state_of(0) == state_of(-1) == ""


def test_what_descends_from_a_process(told_by: str) -> None:
    process = subprocess.Popen([sys.executable, "-c", PARENT])
    try:
        until(lambda: len(descendants(process.pid)) == 1, "its child is there")
        (child,) = descendants(process.pid)
        assert child in descendants(os.getpid())
        os.kill(child, signal.SIGKILL)
        process.wait(20)
        assert descendants(process.pid) == []
    finally:
        process.kill()
        process.wait(20)


@pytest.mark.timeout(600)
def test_a_replay_where_there_is_no_proc(told_by: str, folder: Path, sqlite: Path) -> None:
    """Who is stopped is seen to be stopped, and who is killed to be gone."""
    checks = ("three-deliveries", "killed-on-return", "paused-past-lease")
    seen = run_replay(folder, describe("guarded:charge", target=sqlite), only=checks)
    assert seen.holds == {"three-deliveries", "killed-on-return-parent", "paused-past-lease"}, seen.told()
