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

from semel.cli.demonstration.example import SPEED

COMMAND = [sys.executable, "-m", "semel.cli", "demo"]
WITHOUT_MAIL_SERVER = (
    "import sys; sys.modules['aiosmtpd.smtp'] = None; from semel.cli.main import main; main()"
)
TIDY_SECONDS = 60.0
WORKER_STARTS = "starts (process"
WAITS = """
from shop.jobs import LEASE
from shop.policies import WITH_LOOKUP
from signup.jobs import app, welcome_email
from semel.cli.demonstration.mail_server import BEFORE_REPLY, BEFORE_VERDICT
from semel.core.durations import to_timedelta

retry = welcome_email.retry
attempts = range(1, retry.max_attempts)
print(sum((
    app.settings.lease.total_seconds(),
    sum(retry.backoff.delay(attempt, lambda: 0.0).total_seconds() for attempt in attempts),
    retry.max_attempts * (BEFORE_VERDICT[1] + BEFORE_REPLY[1]),
    2 * LEASE + to_timedelta(WITH_LOOKUP.settle, name="settle").total_seconds(),
)))
"""
"""The longest that the demo waits for one after the other: a kill's lease and a dead letter's attempts, two kills' leases."""
MOST_WAITING = 20.0
"""Of less than a minute; the rest is for what starts, and runs, and is written."""


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
        # A shell's background job ignores SIGINT, and so would what it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
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


@pytest.mark.timeout(400)
def test_the_demo_keeps_its_promises(place: Path) -> None:
    demo = start(place, "--json", "--seed", "7")
    output, errors = demo.communicate(timeout=380)
    figures: dict[str, Any] = json.loads(output)
    assert figures["broken"] == []
    assert (demo.returncode, errors, figures["as_promised"]) == (0, "", True)
    check_sign_ups(figures)
    check_charges(figures["charges"])
    assert_nothing_is_left(place)


def check_sign_ups(figures: dict[str, Any]) -> None:
    """Act one's figures against each other."""
    users = figures["user_list"]
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


def check_charges(figures: dict[str, Any]) -> None:
    """Act two's, and against what was foretold."""
    unguarded, *guarded = figures["methods"]
    assert [method["method"] for method in guarded] == [
        *("ProviderKey", "Lookup", "Hold", "AcceptDuplicate", "AcceptMiss")
    ]
    assert figures["killed_processes"] >= 4
    assert sum(figures["at_kill"].values()) == 7 * 6
    assert figures["answers_lost"] > 0
    assert figures["worker_exit_codes"] == [0]
    for method in figures["methods"]:
        orders = method["order_list"]
        assert len(orders) == method["orders"] == figures["orders_of_each_method"] == 20
        assert method["completed"] + method["held"] == method["orders"]
        assert sum(method["orders_by_charges"].values()) == method["orders"]
        assert sum(order["charges"] > 1 for order in orders) == method["charged_more_than_once"]
        assert (method["completed"], method["held"], method["orders_by_charges"]) == (
            method["foretold_completed"],
            method["foretold_held"],
            method["foretold_orders_by_charges"],
        )
    assert unguarded["charged_more_than_once"] == 6
    assert unguarded["orders_by_charges"] == {"0": 0, "1": 14, "2": 5, "3": 1}
    for method in guarded:
        assert max(order["charges"] for order in method["order_list"]) <= method["never_more_than"]
    by_name = {method["method"]: method for method in guarded}
    for name in ("ProviderKey", "Lookup"):
        assert by_name[name]["orders_by_charges"] == {"0": 0, "1": 20, "2": 0}
    assert by_name["Hold"]["held"] == 8
    assert by_name["AcceptDuplicate"]["charged_more_than_once"] == 6
    assert by_name["AcceptMiss"]["orders_by_charges"]["0"] == 2
    check_decisions(figures["decisions"])


def check_decisions(decisions: list[dict[str, Any]]) -> None:
    """A person's: one order that was charged, one that was not; both are completed, with one charge."""
    assert [(each["act"], each["charges_before"], each["outcome"]) for each in decisions] == [
        ("done", 1, "by_person"),
        ("redo", 0, "acted"),
    ]
    for each in decisions:
        assert (each["charges_after"], each["state"], each["job_status"]) == (1, "completed", "done")
        assert each["command"].startswith(f"semel held {each['act']} {each['operation']} --claim ")


def test_it_waits_for_a_third_of_a_minute_at_most() -> None:
    """What a machine at rest makes of it; how long programs take to start is the machine's."""
    folder = Path(__file__).parent.parent.parent / "examples"
    told = {"PYTHONPATH": str(folder), "SIGNUP_SPEED": str(SPEED), "SHOP_SPEED": str(SPEED)}
    printed = subprocess.check_output(
        [sys.executable, "-c", WAITS], env={**os.environ, **told}, text=True, timeout=350
    )
    assert 5 < float(printed) < MOST_WAITING


def test_the_second_act_says_what_is_promised_before_it_runs(place: Path) -> None:
    """And needs no mail server."""
    demo = subprocess.run(
        [sys.executable, "-c", WITHOUT_MAIL_SERVER, "demo", "--act", "2"],
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(place)},
        check=False,
        timeout=350,
    )
    assert (demo.returncode, demo.stderr) == (0, "")
    shown = demo.stdout
    places = [
        shown.index(words)
        for words in (
            "What is promised beforehand",
            "orders to charge, each a job",
            "kill -9 for processes",
            "no guard: 6 of 20 orders were charged more than once",
            "semel held done",
            "semel held redo",
            "Charges that the provider made",
            "As promised",
        )
    ]
    assert places == sorted(places)
    assert shown.count(WORKER_STARTS) == 3, "each start costs seconds where the machine is busy"
    assert "people sign up" not in shown
    assert_nothing_is_left(place)


@pytest.mark.parametrize("words", ["PostgreSQL", "worker 1 starts", "worker 2 starts"])
def test_a_killed_demo_leaves_nothing_behind(place: Path, words: str) -> None:
    demo = start(place, "--act", "1")
    read_until(demo, words)
    demo.kill()
    demo.communicate()
    assert_nothing_is_left(place, seconds=TIDY_SECONDS)


def test_a_demo_killed_in_its_second_act_leaves_nothing_behind(place: Path) -> None:
    demo = start(place, "--act", "2")
    read_until(demo, "kill -9")
    demo.kill()
    demo.communicate()
    assert_nothing_is_left(place, seconds=TIDY_SECONDS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("act", ["1", "2"])
def test_an_interrupted_demo_tidies_up_before_it_ends(place: Path, number: signal.Signals, act: str) -> None:
    demo = start(place, "--act", act)
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
