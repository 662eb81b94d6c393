"""Nothing is left of a run, whatever ended it; and what goes wrong in one check is that check's verdict alone."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from tests.replay.judging import JOBS, describe, run_replay
from tests.support.waiting import until

from semel.embedded.postmaster import is_alive
from semel.errors import WorkerDidNotStart
from semel.replay import peers, scenarios, version
from semel.replay.description import CalledFunction, Command, Control, Watch
from semel.replay.journal import read_journal
from semel.replay.results import Verdict
from semel.store.constraints import KEPT

pytestmark = pytest.mark.timeout(600)


def pids(folder: Path) -> set[int]:
    """Every process that reported to the run's journal."""
    return {each.pid for each in read_journal(folder / "out" / "logs" / "code" / "journal.jsonl")}


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


def sockets(folder: Path) -> set[Path]:
    """Of the run in this folder; others may run on this machine."""
    found = set()
    for told in Path("/tmp").glob("semel-*/replay-*.json"):
        with suppress(OSError):
            found |= {told.parent / "room"} if str(folder) in told.read_text("utf-8") else set()
    return found


def tables(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


@contextmanager
def running(folder: Path, target: Path, *only: str) -> Iterator[subprocess.Popen[bytes]]:
    """A replay in a process of its own, in this folder."""
    process = subprocess.Popen(
        [sys.executable, str(JOBS / "killed_replay.py"), *only],
        cwd=folder,
        env={**os.environ, "TARGET": str(target)},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(20)


def test_nothing_is_left_of_a_run(folder: Path, sqlite: Path) -> None:
    with running(folder, sqlite, "three", "paused", "constraint") as process:
        until(lambda: sockets(folder), "the control room is open")
        (made,) = sockets(folder)
        assert process.wait(300) == 0

    assert not made.parent.exists()
    assert not any(is_alive(pid) for pid in pids(folder)), pids(folder)
    assert tables(sqlite) >= {"semel_operations"}
    assert "semel_operations" + KEPT not in tables(sqlite)


def test_a_run_that_is_killed_without_the_constraint_is_mended_by_the_next(
    folder: Path, sqlite: Path
) -> None:
    with running(folder, sqlite, "constraint") as process:
        until(lambda: "semel_operations" + KEPT in tables(sqlite), "the table is put aside")
        until(lambda: pids(folder), "a worker reports")
        (left,) = sockets(folder)
        process.send_signal(signal.SIGKILL)
        process.wait(20)

    assert "semel_operations" + KEPT in tables(sqlite), "it was killed in the middle"
    until(lambda: not any(is_alive(pid) for pid in pids(folder)), "the workers have ended by themselves")
    seen = run_replay(
        folder, describe("guarded:charge", target=sqlite), only=("two-at-once", "constraint"), constraint=True
    )
    assert seen.holds == {"two-at-once", "constraint", "without-constraint"}, seen.told()
    assert "semel_operations" + KEPT not in tables(sqlite)
    assert not left.parent.exists()


def test_who_was_stopped_does_not_outlive_the_run(folder: Path, sqlite: Path) -> None:
    with running(folder, sqlite, "paused") as process:
        until(lambda: any(state_of(pid) == "T" for pid in pids(folder)), "a worker has stopped itself")
        process.send_signal(signal.SIGKILL)
        process.wait(20)

    until(lambda: not any(is_alive(pid) for pid in pids(folder)), "all have ended, those that slept too")


@pytest.mark.parametrize("breaks", ["on its way", "afterwards"])
def test_an_exception_in_one_check_is_its_verdict_and_the_others_go_on(
    breaks: str, folder: Path, sqlite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = {
        "on its way": lambda bench, trial: 1 / 0,
        "afterwards": lambda bench, trial: [-1],
    }[breaks]
    monkeypatch.setattr(version, "SCENARIOS", {**scenarios.SCENARIOS, "three-deliveries": broken})

    seen = run_replay(folder, describe("guarded:charge", target=sqlite), only=("three", "look-alikes"))

    assert seen.check("three-deliveries").verdict is Verdict.VACUOUS
    assert re.search(
        "it was not done to its end: (ZeroDivisionError|KeyError)", seen.reasons("three-deliveries")
    )
    assert seen.check("look-alikes").verdict is Verdict.HOLDS


@pytest.mark.parametrize("tells", [True, False], ids=["it tells", "it does not"])
def test_where_the_machine_does_not_tell_who_asked_the_check_says_so(
    tells: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not tells:
        monkeypatch.setattr(peers, "process_of", lambda *_: 0)
    watch = Watch(http="http://127.0.0.1:1/charges", variable="CHARGES", answer={"status": 201})
    description = describe("asking:charge", guarded=False, watch=watch)

    seen = run_replay(folder, description, only=("killed-on-entry",))

    assert seen.holds == {"killed-on-entry-parent"}, seen.told()
    told = [note for note in seen.check("killed-on-entry-parent").evidence.notes if "/proc" in note]
    assert len(told) == (0 if tells else 1)


LOADS_ONCE = """
import os, pathlib, signal

mark = pathlib.Path(__file__).with_suffix(".loaded")
if mark.exists():
    raise RuntimeError("it loads once")
mark.touch()


def charge(order_id, amount=1):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_worker_that_does_not_start_any_more_is_a_verdict(folder: Path) -> None:
    (folder / "once.py").write_text(LOADS_ONCE)
    description = describe("once:charge", guarded=False)

    seen = run_replay(folder, description, only=("killed-on-entry", "three"), code=(("", str(folder)),))

    assert seen.vacuous == {"three-deliveries", "killed-on-entry-parent"}
    assert "it loads once" in "".join(seen.check("killed-on-entry-parent").evidence.logs) + seen.reasons(
        "killed-on-entry-parent"
    )


NOT_LOADED = {
    "no module": (describe("no_such_module:charge", guarded=False), "No module named 'no_such_module'"),
    "no function": (describe("provider:no_such_function", guarded=False), "no attribute 'no_such_function'"),
    "no program": (
        describe("-:-", guarded=False, deliver=Command(command=["no-such-program", "{order_id}"])),
        "there is no program no-such-program",
    ),
    "no module of the control": (
        describe(
            "others:nothing",
            guarded=False,
            control=Control(deliver=CalledFunction(function="no_such_control:charge")),
        ),
        "No module named 'no_such_control'",
    ),
}


@pytest.mark.parametrize("name", NOT_LOADED)
def test_what_does_not_load_is_one_error_before_anything_is_sent(name: str, folder: Path) -> None:
    description, said = NOT_LOADED[name]

    with pytest.raises(WorkerDidNotStart) as caught:
        run_replay(folder, description)

    assert caught.value.code == "worker-did-not-start"
    assert said in str(caught.value)
    assert caught.value.holds == "No message was sent to it."
    assert not (folder / "received").exists()
    assert not list(folder.glob("out/expected-*")), "nothing was expected of it either"


@pytest.mark.parametrize("broken", ["before", "after"])
def test_each_version_of_the_code_has_to_load_before_one_is_sent_to(broken: str, folder: Path) -> None:
    (folder / "broken").mkdir()
    (folder / "broken" / "provider.py").write_text("def charge(order_id): ...")
    (folder / "broken" / "others.py").write_text("import not_there")
    places = {"before": str(JOBS), "after": str(JOBS), broken: str(folder / "broken")}

    with pytest.raises(WorkerDidNotStart, match="not_there"):
        run_replay(folder, describe("others:nothing", guarded=False), code=tuple(places.items()))

    assert not (folder / "received").exists()
