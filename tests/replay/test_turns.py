"""Two replays at once on one guard or one queue: the second one waits for the first one's end."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from semel.errors import ConfigurationError
from semel.replay.staging import shared_of
from semel.replay.turns import open_turns


def test_the_second_one_waits_for_the_end_of_the_first(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    waits, has, first_ended = threading.Event(), threading.Event(), []

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            waits.set()

    def second() -> None:
        with open_turns(tmp_path) as turns:
            turns.take(["redis://r/0", "sqlite:///g.db"])
            assert first_ended
            has.set()

    heard = Heard()
    logging.getLogger("semel.replay").addHandler(heard)
    try:
        with open_turns(tmp_path) as first:
            first.take(["sqlite:///g.db"])
            first.take(["sqlite:///g.db"])  # the second version of its code
            thread = threading.Thread(target=second, daemon=True)
            thread.start()
            assert waits.wait(20)
            assert not has.is_set()
            first_ended.append(True)
        thread.join(20)
    finally:
        logging.getLogger("semel.replay").removeHandler(heard)
    assert has.is_set()
    assert "Another replay runs on sqlite:///g.db" in caplog.text


def test_other_targets_are_nobodys_business(tmp_path: Path) -> None:
    with open_turns(tmp_path) as first, open_turns(tmp_path, patience=0) as second:
        first.take(["redis://r/0"])
        second.take(["redis://r/1"])


def test_it_does_not_wait_for_ever(tmp_path: Path) -> None:
    with open_turns(tmp_path) as first, open_turns(tmp_path, patience=0) as second:
        first.take(["redis://r/0"])
        with pytest.raises(ConfigurationError, match="Another replay has been on redis://r/0"):
            second.take(["redis://r/0"])


def test_what_is_only_counted_or_called_is_not_shared() -> None:
    targets = {
        "function": "function shop:charge",
        "broker": "redis://r/0",
        "outside system": "http://bank",
        "database of count": "sqlite:///c.db",
        "database of guard": "sqlite:///g.db",
    }
    assert shared_of(targets) == ["redis://r/0", "sqlite:///g.db"]


def test_two_runs_at_once_both_hold(project: Path) -> None:
    """Each has settings of its own, and neither has the other's table aside under it."""
    command = [sys.executable, "-m", "semel.cli", "replay", "charge.toml"]
    command += ["--only", "three", "--only", "killed-past-claim", "--only", "without"]
    both = [
        subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(2)
    ]
    said = [each.communicate(timeout=240)[0] for each in both]
    assert [each.returncode for each in both] == [0, 0], "\n".join(said)
    assert sum("Another replay runs on" in each for each in said) == 1
