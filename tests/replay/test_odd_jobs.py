"""Jobs as people write them: the effect in a process of its own, exceptions that are caught, a count that is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from semel.replay.staging import declare

Command = Callable[..., "subprocess.CompletedProcess[str]"]
JOBS = """
import pathlib, subprocess, sys, semel, provider

once = semel.Once(str(pathlib.Path(__file__).parent / "guard.db"))

@once.operation("apart", key="order", acting="explicit", effect=semel.Hold(), lease="30 s")
def apart(op, order: int):
    with op.acting():
        subprocess.run([sys.executable, "-c", f"import provider; provider.charge({order})"], check=True)
    return op.done(order)

@once.operation("careful", key="order", acting="explicit", effect=semel.Hold(), lease="30 s")
def careful(op, order: int):
    with op.acting():
        try:
            provider.charge(order)
        except Exception as error:
            print("caught", error)
    return op.done(order)

@once.operation("later", key="order", acting="explicit", effect=semel.Hold(), lease="30 s")
async def later(op, order: int):
    async with op.acting():
        await provider.WATCHED(order)
    return await op.done(order)
"""
LATER = """

def coroutine(order):
    async def act():
        charge(order)
    return act()

class Awaitable:
    def __init__(self, order):
        self.order = order

    def __await__(self):
        yield from coroutine(self.order).__await__()

def awaitable(order):
    return Awaitable(order)

class Base:
    @classmethod
    async def inherited(cls, order):
        charge(order)

class Sub(Base):
    pass

class Gateway:
    async def act(self, order):
        charge(order)

gateway = Gateway()
"""

LOST = """
import pathlib, semel, provider

once = semel.Once(str(pathlib.Path(__file__).parent / "guard.db"))

def find(reference):
    raise LookupError("no such payment")

@once.operation(
    "lost", key="order", acting="explicit", effect=semel.Lookup(find, settle=0), lease="30 s"
)
def charge(op, order: int):
    with op.acting():
        provider.charge(order)
    return op.done(order)
"""

BY_NAME = """
import pathlib, provider

def once(function):
    def run(*args, **kwargs):
        mark = pathlib.Path(__file__).parent / f"seen-{kwargs.get('order')}"
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            return
        function(*args, **kwargs)
    return run

@once
def charge(order: int):
    provider.charge(order)
"""

LIVE = """
import replayed_jobs, provider

def charge(order):
    print("inside", flush=True)
    input()

provider.charge = charge
replayed_jobs.charge(1)
"""


def replayed(semel: Command, project: Path, function: str, *only: str, code: int = 0) -> dict[str, Any]:
    """The checks of a run over one of the jobs, by name."""
    (project / "odd_jobs.py").write_text(JOBS)
    text = (project / "charge.toml").read_text().replace("replayed_jobs:charge", f"odd_jobs:{function}")
    (project / "odd.toml").write_text(text)
    declare(project, {"function": f"function odd_jobs:{function}"})
    words = [word for name in only for word in ("--only", name)]
    done = semel("replay", "odd.toml", "--json", *words)
    assert done.returncode == code, done.stdout + done.stderr
    return {each["name"]: each for each in json.loads(done.stdout)["runs"][0]["checks"]}


def test_a_process_that_the_job_started_is_killed_with_it(semel: Command, project: Path) -> None:
    checks = replayed(semel, project, "apart", "killed-on-entry", "redo")
    assert checks["killed-on-entry-parent"]["evidence"]["effects"] == [0]
    assert checks["killed-on-entry-parent"]["evidence"]["exits"] == [-9]
    assert checks["redo"]["evidence"]["effects"] == [1]


def test_a_job_that_catches_what_is_raised_in_it_is_not_held_to_have_raised(
    semel: Command, project: Path
) -> None:
    check = replayed(semel, project, "careful", "exception")["exception-after-effect"]
    assert check["evidence"]["answer"] == "returned"
    assert check["evidence"]["records"][0]["state"] == "completed acted"
    assert check["evidence"]["control"] == 2


def test_a_query_that_fails_is_told_before_anything_is_delivered(semel: Command, project: Path) -> None:
    with (project / "charge.toml").open("a") as file:
        file.write('[count]\nby = "sql"\ndatabase = "guard.db"\n')
        file.write('query = "SELECT count(*) FROM nowhere WHERE order_id = :order"\n')
    done = semel("replay", "charge.toml", "--only", "three")
    assert done.returncode == 2, done.stdout
    assert "The query that counts effects failed: no such table: nowhere" in done.stderr
    assert not (project / "charges.txt").exists(), "nothing was delivered"


def test_how_deliveries_ended_is_told_where_the_call_was_never_hit(semel: Command, project: Path) -> None:
    text = (project / "bare.toml").read_text()
    (project / "bare.toml").write_text(text.replace('order = "{n}"', 'oder = "{n}"'))
    done = semel("replay", "bare.toml", "--only", "three")
    assert done.returncode == 1
    assert "the watched call was never hit\n" in done.stdout
    assert "deliveries ended with TypeError (3 times)" in done.stdout


def test_a_guards_database_with_live_claims_of_others_is_refused(semel: Command, project: Path) -> None:
    """A worker of somebody's is inside its effect; past the end of its lease it is no traffic any more."""
    inside = subprocess.Popen(
        [sys.executable, "-c", LIVE], cwd=project, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )
    assert inside.stdout is not None
    assert inside.stdout.readline() == "inside\n"
    refused = semel("replay", "charge.toml", "--only", "three")
    shared = semel("replay", "charge.toml", "--only", "three", "--shared")
    inside.communicate("\n")
    after = semel("replay", "charge.toml", "--list")
    assert refused.returncode == 2, refused.stdout
    assert (
        "There is other traffic: 1 operations of charge are claimed in the guard's database."
        in refused.stderr
    )
    assert shared.returncode == 0, shared.stderr
    assert "other traffic" not in after.stderr


def test_what_a_worker_wrote_is_reported_without_its_passwords(semel: Command, project: Path) -> None:
    with (project / "provider.py").open("a") as file:
        file.write('print("provider at https://me:hunter2@pay.test", flush=True)\n')
    done = semel("replay", "bare.toml", "--only", "three", "--json", "--html", "page.html")
    assert done.returncode == 1
    assert "https://…@pay.test" in done.stdout
    assert "https://…@pay.test" in (project / "page.html").read_text()
    assert "hunter2" not in done.stdout + (project / "page.html").read_text()


def watching(project: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The job awaits this, and it is the watched call."""
    monkeypatch.setattr(f"{__name__}.JOBS", JOBS.replace("WATCHED", name))
    with (project / "provider.py").open("a") as file:
        file.write(LATER)
    path = project / "charge.toml"
    path.write_text(path.read_text().replace("provider.charge", f"provider.{name}"))


def test_a_call_that_answers_a_coroutine_returns_when_that_has_been_awaited(
    semel: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watching(project, monkeypatch, "coroutine")
    replayed(semel, project, "later", "killed-on-return")
    orders = (project / "charges.txt").read_text().split()
    assert len(orders) == 3, "one with the guard, two without it"


def test_what_is_answered_before_the_effect_makes_it_vacuous(
    semel: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watching(project, monkeypatch, "awaitable")
    check = replayed(semel, project, "later", "killed-on-return", code=1)["killed-on-return-parent"]
    assert check["verdict"] == "vacuous"
    assert "what provider.awaitable answers before it has its effect" in check["reasons"][0]


def test_a_class_method_that_is_inherited_is_named_where_it_is(
    semel: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watching(project, monkeypatch, "Sub.inherited")
    check = replayed(semel, project, "later", "killed-on-return", code=1)["killed-on-return-parent"]
    assert check["evidence"]["escaped"] == ["provider.Base.inherited"]


def test_a_method_may_be_named_by_an_object_that_has_it(
    semel: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watching(project, monkeypatch, "gateway.act")
    check = replayed(semel, project, "later", "killed-on-return")["killed-on-return-parent"]
    assert check["evidence"]["killed_at"] == ["return (parent)"]


def test_what_the_watched_call_raised_is_told_where_effects_are_missing(
    semel: Command, project: Path
) -> None:
    with (project / "provider.py").open("a") as file:
        file.write('\n\ndef charge(order):\n    raise ConnectionError("no route")\n')
    done = semel("replay", "bare.toml", "--only", "three")
    assert done.returncode == 1
    assert "the watched call raised ConnectionError('no route') (3 times)" in done.stdout


def test_a_count_that_asks_for_something_else_is_told(semel: Command, project: Path) -> None:
    with (project / "bare.toml").open("a") as file:
        file.write('[count]\nby = "sql"\ndatabase = "guard.db"\n')
        file.write('query = "SELECT count(*) FROM semel_operations WHERE label = :order"\n')
    declare(project, {"count": str(project / "guard.db")})
    done = semel("replay", "bare.toml", "--only", "three")
    assert done.returncode == 1, done.stderr
    assert "the watched call returned (3 times), and nothing was counted: does [count] ask" in done.stdout


def test_what_a_look_up_raised_is_told_beside_the_record_that_it_left_open(
    semel: Command, project: Path
) -> None:
    (project / "lost.py").write_text(LOST)
    text = (project / "charge.toml").read_text().replace("replayed_jobs:charge", "lost:charge")
    (project / "lost.toml").write_text('patience = "2 s"\n' + text)
    declare(project, {"function": "function lost:charge"})
    done = semel("replay", "lost.toml", "--only", "killed-on-return")
    assert done.returncode == 1, done.stderr
    assert "a record ended as claimed, not as completed found: LookupError: no such payment" in done.stdout


def test_a_guard_that_reads_arguments_by_name_alone_fails_where_they_come_by_position(
    semel: Command, project: Path
) -> None:
    (project / "by_name.py").write_text(BY_NAME)
    text = (project / "bare.toml").read_text().replace("replayed_jobs:bare", "by_name:charge")
    declare(project, {"function": "function by_name:charge"})
    verdicts = {}
    for positional in ("false", "true"):
        file = project / f"positional-{positional}.toml"
        file.write_text(text.replace("[watch]", f"positional = {positional}\n\n[watch]"))
        done = semel("replay", file.name, "--only", "look-alikes", "--json")
        (check,) = json.loads(done.stdout)["runs"][0]["checks"]
        verdicts[positional] = (check["verdict"], check["evidence"]["effects"])
    assert verdicts == {"false": ("holds", [1, 1]), "true": ("fails", [1, 0])}
