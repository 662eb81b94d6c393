"""`semel demo` as people run it: a real process, which must keep its promises and leave nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

COMMAND = [sys.executable, "-m", "semel.cli", "demo"]
WITHOUT_MAIL_SERVER = (
    "import sys; sys.modules['aiosmtpd.smtp'] = None; from semel.cli.main import main; main()"
)
TIDY_SECONDS = 60.0


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """What the demo takes for the folder of temporary files; it marks every process that it starts."""
    made = tmp_path / "temporary"
    made.mkdir()
    return made


def start(place: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(place)},
        start_new_session=True,
    )


def processes_of(place: Path) -> list[str]:
    """The processes that name the folder in their command or their environment."""
    mark = os.fsencode(place)
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            command, environment = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if mark in command or mark in environment:
            found.append(f"{entry.name} {command.replace(bytes(1), b' ').decode(errors='replace')}")
    return found


def assert_nothing_is_left(place: Path, *, seconds: float = 0.0) -> None:
    """No process and no file; after at most so many seconds."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit and (processes_of(place) or list(place.iterdir())):
        time.sleep(0.05)
    assert processes_of(place) == []
    assert list(place.iterdir()) == []


def read_until(demo: subprocess.Popen[str], words: str) -> None:
    assert demo.stdout is not None
    for line in demo.stdout:
        if words in line:
            return
    pytest.fail(f"it never said {words!r}: {demo.communicate()}")


def test_the_demo_keeps_its_promises(place: Path) -> None:
    demo = start(place, "--json", "--seed", "7")
    output, errors = demo.communicate(timeout=150)
    assert (demo.returncode, errors) == (0, "")
    figures: dict[str, Any] = json.loads(output)
    users = figures["user_list"]

    assert figures["broken"] == []
    assert (
        figures["users"] == figures["sign_ups"] - 1 == len(users) == figures["jobs"] == figures["jobs_done"]
    )
    assert (figures["rolled_back"], figures["traces_of_rolled_back"]) == (1, 0)
    assert figures["recovered"] == figures["running_at_kill"] > 0
    assert figures["killed_processes"] >= 2
    assert figures["dead_letters"] == figures["requeued_and_done"] == len(figures["dead_letter_list"]) > 0

    assert all(user["accepted"] >= 1 and user["message_ids"] == 1 for user in users)
    assert all(user["accepted"] <= 1 + user["crashes"] for user in users)
    assert figures["messages_accepted"] == sum(user["accepted"] for user in users)
    assert figures["messages_refused"] == sum(user["refused"] for user in users) > 0
    assert figures["attempts"] == sum(user["attempts"] + user["crashes"] for user in users)
    offers = figures["messages_accepted"] + figures["messages_refused"]
    assert offers <= figures["attempts"] <= offers + sum(user["crashes"] for user in users)
    assert_nothing_is_left(place)


@pytest.mark.parametrize("words", ["PostgreSQL", "worker 1 starts", "worker 2 starts"])
def test_a_killed_demo_leaves_nothing_behind(place: Path, words: str) -> None:
    demo = start(place)
    read_until(demo, words)
    demo.kill()
    demo.communicate()
    assert_nothing_is_left(place, seconds=TIDY_SECONDS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_tidies_up_before_it_ends(place: Path, number: signal.Signals) -> None:
    demo = start(place)
    read_until(demo, "worker 1 starts")
    demo.send_signal(number)
    _, errors = demo.communicate(timeout=TIDY_SECONDS)
    assert demo.returncode == 130
    assert errors == "Interrupted; everything that the demo started is gone.\n"
    assert_nothing_is_left(place)


def test_without_a_mail_server_it_says_what_to_install(place: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_MAIL_SERVER, "demo"],
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(place)},
        check=False,
    )
    assert done.returncode == 2
    assert "pip install 'semel[demo]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert_nothing_is_left(place)
