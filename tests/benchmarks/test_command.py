"""The command as people run it, made small."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.processes import tree
from semel.embedded.waiting import wait_until

SMALL = ("--only", "drain", "--repetitions", "1", "--scale", "0.005", "--peers")


def test_a_run_prints_its_table_and_writes_every_repetition(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--json", str(tmp_path / "run.json"), "--chart", str(tmp_path / "run.svg")]
    assert main([*files, "--data", str(tmp_path), *SMALL]) == 0
    printed = capsys.readouterr().out
    assert "LEFT OUT pgqueuer: not asked for" in printed
    assert "fsync on, synchronous_commit on" in printed
    assert "not measured: nobody to compare with" in printed

    written = json.loads((tmp_path / "run.json").read_text())
    (turn,) = written["measures"]["drain"]
    assert set(turn) == {"semel", "pgbench"}
    (against_pgbench,) = [line for line in written["figures"] if "pgbench" in line["what"]]
    assert against_pgbench["measured"] == pytest.approx(turn["semel"]["value"] / turn["pgbench"]["value"])
    assert "semel" in (tmp_path / "run.svg").read_text()
    assert list(tmp_path.glob("semel-peers-*")) == []


def test_servers_and_workers_end_with_the_run(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "--data",
        str(tmp_path),
        "--only",
        "drain",
        "--scale",
        "0.2",
        "--peers",
    ]
    with (tmp_path / "log").open("wb") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log)
    assert wait_until(lambda: any(works(process) for process in tree(running.pid)), 60), (
        tmp_path / "log"
    ).read_text()
    processes = tree(running.pid)
    assert len(processes) > 6  # PostgreSQL's too
    running.send_signal(signal.SIGINT)
    running.wait(30)
    assert wait_until(lambda: not any(alive(process) for process in processes), 5)
    assert list(tmp_path.glob("semel-peers-*")) == []


def works(process: int) -> bool:
    try:
        return b"with_semel\0work\0" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
