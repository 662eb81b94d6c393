"""The commands on each database: as processes of their own, and (most, since it is faster) in this one."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command
from tests.guard_people.conftest import Inbox
from tests.guard_people.test_sending import insert_job, status_of

from semel.core.keys import compute_key
from semel.core.operations import State
from semel.guard.declaration import to_message
from semel.store.guard_end import complete_late, uncertain


@pytest.fixture
def here(bare: Command, inbox: Inbox) -> Command:
    """A command in this process, on the inbox's database."""

    def call(*words: str, **environment: str) -> Any:
        return bare(*words, SEMEL_DATABASE_URL=inbox.url, **environment)

    return call


def test_a_process_looks_and_decides(process: Command, inbox: Inbox) -> None:
    made, _ = inbox.make("held")
    (one,) = process("held", "list", "--json", "--database", inbox.url).json()["operations"]
    decided = process(
        "held", "done", str(one["id"]), "--claim", str(one["claim"]), "--reason", "found it", "--json",
        SEMEL_DATABASE_URL=inbox.url, SEMEL_WHO="ann@desk",
    ).json()  # fmt: skip
    assert (decided["operation_id"], decided["after"]) == (made, "completed")
    assert inbox.events(made)[-1] == ("done", "ann@desk", "found it")


def test_look_and_decide(here: Command, inbox: Inbox) -> None:
    made, request = inbox.make("held", scope="eu")
    listed = here("held", "list", "--json").json()
    (one,) = listed["operations"]
    assert (one["id"], one["claim"], one["state"], one["scope"]) == (made, 1, "held", "eu")
    assert (one["label"], one["key"], listed["next_before_id"]) == (request.label, request.key, None)
    shown = here("held", "show", str(made))
    assert f"Operation {made}: charge {request.label} in eu, held, claim 1" in shown.out
    assert f"held, claim 1, revision {one['revision']}" in shown.out
    assert f'semel held redo {made} --claim 1 --revision {one["revision"]} --reason "…"' in shown.out
    missing = here("held", "done", str(made), "--reason", "x")
    assert missing.code == 2
    assert "--claim is missing" in missing.err
    wrong = here("held", "done", str(made), "--claim", "3", "--reason", "x")
    assert wrong.code == 1
    assert "it has claim 1 now, no longer 3" in wrong.err
    older = here("held", "done", str(made), "--claim", "1", "--revision", "1", "--reason", "x")
    assert older.code == 1
    assert f"it has revision {one['revision']} now, no longer 1" in older.err
    assert f"semel operations show {made}" in older.err
    alone = here("held", "done", str(made), "--revision", "1", "--reason", "x")
    assert (alone.code, "--revision goes with --claim" in alone.err) == (2, True)
    assert here("held", "done", "--all", "--revision", "1", "--reason", "x").code == 2
    assert here("held", "done", str(made), "--claim", "1").code == 2
    done = here(
        "held", "done", str(made), "--claim", "1", "--revision", str(one["revision"]),
        "--reason", "found it", "--result", '"ch_7"', "--json",
        SEMEL_WHO="ann@desk",
    ).json()  # fmt: skip
    assert (done["act"], done["before"], done["after"], done["claim"]) == ("done", "held", "completed", 1)
    record = here("operations", "show", str(made), "--json").json()
    assert (record["operation"]["outcome"], record["result"]) == ("by_person", "ch_7")
    assert record["events"][-1] | {"at": 0} == {
        "at": 0, "event": "done", "claim": 1, "who": "ann@desk", "why": "found it", "detail": {"before": "held"},
    }  # fmt: skip
    assert here("held", "list").out == "Nothing is held.\n"


def test_redo_says_who_has_to_send(here: Command, inbox: Inbox) -> None:
    made, _ = inbox.make("stale")
    assert here("held", "list").out == "Nothing is held.\n"
    assert f"{made}" in here("held", "list", "--stale").out
    redone = here("held", "redo", str(made), "--claim", "1", "--reason", "not there", "--new-reference")
    assert redone.out.startswith(f"Operation {made} (charge order-")
    assert "claimed → released" in redone.out
    assert "send it again yourself" in redone.out
    assert inbox.get(made).operation.generation == 2


def test_many(here: Command, inbox: Inbox) -> None:
    for _ in range(3):
        inbox.make("held", job_type="mail")
    other, _ = inbox.make("held")
    assert here("held", "abandon", "--reason", "late").code == 2
    assert here("held", "abandon", "7", "--job-type", "mail", "--reason", "late").code == 2
    dry = here("held", "abandon", "--job-type", "mail", "--reason", "late", "--dry-run")
    assert dry.out == "3 operations match; nothing was changed.\n"
    many = here("held", "abandon", "--job-type", "mail", "--reason", "late", "--json").json()
    assert many == {"matched": 3, "changed": 3, "unsent": 0, "unsent_why": [], "left": [], "dry_run": False}
    assert inbox.get(other).operation.state is State.HELD
    rest = here("held", "redo", "--all", "--reason", "not there")
    assert rest.out.splitlines()[0] == "1 of 1 operations: redo."
    assert "not sent again" in rest.out


def test_a_redo_without_the_option_that_it_needs_changes_nothing(here: Command, inbox: Inbox) -> None:
    mine, _ = inbox.make("held", job_type="mine")
    celery, _ = inbox.make("held", message=to_message("celery", task="shop.charge"))
    sidekiq, _ = inbox.make("held", message=to_message("sidekiq", jid="b4a577"))
    inbox.make("completed", message=to_message("sidekiq", jid="done"), job_type="mine")
    many = here("held", "redo", "--all", "--reason", "not there")
    assert many.code == 2
    assert "came by celery and sidekiq, and no --celery MODULE:APP and --sidekiq URL was given" in many.err
    assert "Nothing was changed." in many.err
    one = here("held", "redo", str(celery), "--claim", "1", "--reason", "not there")
    assert one.code == 2
    assert "no --celery MODULE:APP was given" in one.err
    with_one = here("held", "redo", "--all", "--reason", "not there", "--sidekiq", "redis://127.0.0.1:1/0")
    assert with_one.code == 2
    assert "sidekiq" not in with_one.err
    assert {inbox.get(each).operation.state for each in (mine, celery, sidekiq)} == {State.HELD}
    assert [event[0] for event in inbox.events(celery)] == ["held"], "not even tried"
    assert here("held", "redo", "--all", "--reason", "not there", "--dry-run").code == 0
    assert here("held", "redo", "--job-type", "mine", "--reason", "not there").code == 0
    released = here("held", "redo", "--all", "--reason", "not there", "--no-send").out.splitlines()
    assert released[1] == "Released, but not sent again: 2. In 10 minutes: semel operations stale"
    assert inbox.get(celery).operation.state is State.RELEASED


def test_stale_are_released_ones_too_that_nobody_claims(here: Command, inbox: Inbox) -> None:
    made = {
        state: inbox.make(state)[0]
        for state in ("claimed", "stale", "held", "released", "unclaimed", "completed")
    }
    for words in (("operations", "stale"), ("held", "list", "--stale")):
        told = here(*words, "--json").json()["operations"]
        assert {each["id"] for each in told} == {made["stale"], made["unclaimed"]}, words
    many = here("held", "redo", "--stale", "--all", "--reason", "the broker is back", "--json").json()
    assert (many["matched"], many["changed"], many["left"]) == (2, 2, [])
    assert inbox.get(made["released"]).operation.claim == 1, "its next delivery may be due"


def test_find_by_label_and_key(here: Command, inbox: Inbox) -> None:
    key = compute_key((4711, "eu"))
    made, _ = inbox.make("held", key=key.digest, label=key.label)
    number = compute_key(4711)
    plain, _ = inbox.make("held", key=number.digest, label=None)

    def found(*words: str) -> int:
        return int(here("operations", "show", *words, "--json").json()["operation"]["id"])

    assert found("4711/eu") == found(key.digest) == made
    assert found("--job-type", "charge", "4711", "eu") == made
    assert found("--job-type", "charge", "4711") == found("--job-type", "charge", "int:4711") == plain
    assert here("operations", "show", "--job-type", "charge", "str:4711").code == 1
    assert here("operations", "show", "--job-type", "charge", "date:4711").code == 1
    assert here("operations", "show", "nothing").code == 1
    twin, _ = inbox.make("held", label=key.label, job_type="mail")
    several = here("operations", "show", "4711/eu")
    assert several.code == 2
    assert f"{twin}, {made}" in several.err
    assert found("--job-type", "mail", "4711/eu") == twin


def test_operations(here: Command, inbox: Inbox) -> None:
    made = {state: inbox.make(state)[0] for state in ("stale", "unclaimed", "held", "completed", "claimed")}
    listed = here("operations", "list", "--state", "held,completed", "--json").json()
    assert {one["id"] for one in listed["operations"]} == {made["held"], made["completed"]}
    stale = here("operations", "stale", "--json").json()
    assert {one["id"] for one in stale["operations"]} == {made["stale"], made["unclaimed"]}
    (counted,) = stale["waiting"]
    assert {name: counted[name] for name in ("job_type", "held", "stale", "released")} == {
        "job_type": "charge", "held": 1, "stale": 1, "released": 1,
    }  # fmt: skip
    assert "released, unclaimed" in here("operations", "stale").out
    assert here("operations", "redact", str(made["claimed"]), "--reason", "r").code == 1
    redacted = here("operations", "redact", str(made["completed"]), "--reason", "erasure request 7")
    assert redacted.out == f"Operation {made['completed']} is redacted.\n"
    assert inbox.get(made["completed"]).result is None
    inbox.shift(made["completed"], "completed_at", 100 * 86_400)
    assert (
        here("operations", "purge", "--older", "90 days", "--dry-run").out
        == "1 operation would be deleted.\n"
    )
    assert here("operations", "purge", "--older", "90 days").out == "1 operation deleted.\n"
    assert here("operations", "purge", "--older", "1 h", "--state", "held").code == 2
    assert here("operations", "purge", "--older", "90 days", "--events").out == "0 events deleted.\n"
    assert here("operations", "show", str(made["completed"])).code == 1


def test_a_database_without_tables(process: Command, tmp_path: Path) -> None:
    answer = process("held", "list", "--database", f"sqlite:///{tmp_path}/empty.db")
    assert answer.code == 1
    assert "tables are not there" in answer.err


def test_a_held_job_is_shown_and_settled(process: Command, beside: Inbox) -> None:
    job = insert_job(beside.url, "held")
    made, _ = beside.make("held", message=to_message("semel", job_id=job))
    shown = process("held", "show", str(made), SEMEL_DATABASE_URL=beside.url)
    assert f"job        {job}: charge, held" in shown.out
    answer = process(
        "held", "redo", str(made), "--claim", "1", "--reason", "not there", SEMEL_DATABASE_URL=beside.url
    )
    assert f"Job {job} runs again." in answer.out
    assert status_of(beside, job) == "pending"


class Terminal:
    """A command in front of a terminal of its own."""

    def __init__(self, *words: str, directory: Path, url: str) -> None:
        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "semel.cli", *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=directory,
            env=os.environ | {"SEMEL_DATABASE_URL": url},
            start_new_session=True,
        )
        os.close(theirs)
        self.text = ""

    def wait_for(self, text: str) -> None:
        ends = time.monotonic() + 60
        while text not in self.text:
            assert time.monotonic() < ends, self.text
            if select.select([self.ours], [], [], 0.1)[0]:
                self.text += os.read(self.ours, 4096).decode(errors="replace")

    def type(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def end(self) -> int:
        code = self.process.wait(timeout=60)
        os.close(self.ours)
        return code


@pytest.mark.parametrize("inbox", ["postgresql"], indirect=True)
@pytest.mark.parametrize("meanwhile", ["nothing", "a late finisher"])
def test_a_terminal_decides_on_what_it_shows(inbox: Inbox, tmp_path: Path, meanwhile: str) -> None:
    made, request = inbox.make("held")
    terminal = Terminal("held", "redo", str(made), "--reason", "not there", directory=tmp_path, url=inbox.url)
    terminal.wait_for("Redo this operation?")
    assert f"Operation {made}: charge" in terminal.text
    if meanwhile == "nothing":
        terminal.type("y\n")
        assert terminal.end() == 0
        assert inbox.get(made).operation.state is State.RELEASED
    else:
        inbox.run(complete_late(request, result=None, result_dropped=False))
        terminal.type("y\n")
        assert terminal.end() == 1
        assert inbox.get(made).operation.state is State.COMPLETED


@pytest.mark.parametrize("inbox", ["postgresql"], indirect=True)
def test_a_terminal_shows_what_changed_and_asks_again(inbox: Inbox, tmp_path: Path) -> None:
    made, request = inbox.make("held")
    terminal = Terminal("held", "redo", str(made), "--reason", "not there", directory=tmp_path, url=inbox.url)
    terminal.wait_for("Redo this operation?")
    inbox.run(uncertain(request, error="TimeoutError: no answer"))
    terminal.text = ""
    terminal.type("y\n")
    terminal.wait_for("Redo this operation?")
    assert "It has changed since it was shown:" in terminal.text
    assert "TimeoutError: no answer" in terminal.text
    assert "semel held" not in terminal.text
    assert inbox.get(made).operation.state is State.HELD
    terminal.type("y\n")
    assert terminal.end() == 0
    assert inbox.get(made).operation.state is State.RELEASED


def test_a_terminal_that_says_no_changes_nothing(beside: Inbox, tmp_path: Path) -> None:
    made, _ = beside.make("held")
    terminal = Terminal("held", "done", str(made), "--reason", "x", directory=tmp_path, url=beside.url)
    terminal.wait_for("Done this operation?")
    terminal.type("n\n")
    assert terminal.end() == 1
    assert beside.get(made).operation.state is State.HELD
