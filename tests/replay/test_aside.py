"""While the guard's table is aside, for the check without its constraint: whatever ends the replay then, it comes back."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.guard.stored import Stored
from tests.replay.judging import JOBS, describe, run_replay
from tests.support.waiting import until

import semel
from semel.errors import TableLeftAside
from semel.store.constraints import KEPT, Constraints

pytestmark = pytest.mark.timeout(600)
COLUMNS = ("scope", "job_type", "key")


def heard() -> None:
    """What runs in the background of a shell, or by nohup, has these ignored, and so has what it starts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt here, however the tests were started."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@dataclass
class Guarded:
    """A database with the guard's table, and one record in it."""

    target: str
    stored: Stored
    table: str

    @property
    def kept(self) -> str:
        return self.table + KEPT

    def exists(self, table: str) -> bool:
        try:
            self.stored.ask(f"SELECT 1 FROM {table} LIMIT 1")
        except Exception as error:
            if not any(said in str(error) for said in ("does not exist", "doesn't exist", "no such table")):
                raise
            return False
        return True

    def is_aside(self) -> bool:
        return self.exists(self.kept) and self.exists(self.table)

    def is_as_before(self) -> bool:
        """The table has its name, its record and its constraint; the copy is gone."""
        constraints = Constraints(self.target, self.table)
        try:
            unique = constraints.find(COLUMNS)
        finally:
            constraints.close()
        (count,) = self.stored.ask(f"SELECT count(*) FROM {self.table} WHERE job_type = 'before'")[0]
        return unique is not None and count == 1 and not self.exists(self.kept)


@pytest.fixture(params=["sqlite", "postgresql", "mysql"])
def guarded(request: pytest.FixtureRequest, make_database: Callable[[str], Any]) -> Iterator[Guarded]:
    where = make_database(request.param)
    target = where[0].url(where[1]) if request.param == "mysql" else str(where)
    once = semel.Once(target)
    with once.claim("before", 1):
        pass
    once.close()
    table = "semel.operations" if request.param == "postgresql" else "semel_operations"
    with closing(Stored.at(request.param, where)) as stored:
        yield Guarded(target, stored, table)


def interrupted(folder: Path, guarded: Guarded, number: signal.Signals) -> int:
    """The exit code of a replay that gets this signal while the table is aside."""
    command = [sys.executable, str(JOBS / "killed_replay.py"), "constraint"]
    process = subprocess.Popen(
        command, cwd=folder, env={**os.environ, "TARGET": guarded.target}, preexec_fn=heard
    )
    try:
        until(guarded.is_aside, "the table is put aside")
        process.send_signal(number)
        return process.wait(60)
    finally:
        process.kill()
        process.wait(20)


def test_ctrl_c_puts_the_table_back(folder: Path, guarded: Guarded) -> None:
    assert interrupted(folder, guarded, signal.SIGINT) == -signal.SIGINT
    assert guarded.is_as_before()


def test_after_a_kill_the_next_replay_puts_it_back_first(
    folder: Path, guarded: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    assert interrupted(folder, guarded, signal.SIGKILL) == -signal.SIGKILL
    assert guarded.is_aside()
    seen = run_replay(folder, describe("guarded:charge", target=guarded.target), only=("look-alikes",))
    assert seen.holds == {"look-alikes"}, seen.told()
    assert guarded.is_as_before()
    assert f"{guarded.table} is back" in caplog.text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_the_command_puts_it_back_whatever_asks_it_to_end(project: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "semel", "replay", "charge.toml", "--only", "constraint"]
    process = subprocess.Popen(command, cwd=project, stderr=subprocess.PIPE, text=True, preexec_fn=heard)
    with closing(sqlite3.connect(project / "guard.db")) as connection:

        def names() -> set[str]:
            return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}

        try:
            until(lambda: {"semel_operations", "semel_operations" + KEPT} <= names(), "it is put aside")
            process.send_signal(number)
            process.wait(60)
        finally:
            process.kill()
            process.wait(20)
        assert process.returncode in (128 + number, -number)
        assert "semel_operations" in names()
        assert "semel_operations" + KEPT not in names()


@pytest.fixture
def constraints(guarded: Guarded) -> Iterator[Constraints]:
    opened = Constraints(guarded.target, guarded.table)
    yield opened
    opened.close()


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("where", ["_rename", "_ask"])
def test_ctrl_c_on_the_way_there_puts_it_back(
    where: str, guarded: Guarded, constraints: Constraints, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right after each statement that puts it aside."""
    real = getattr(constraints, where)
    left = [3]

    def then_interrupted(*given: Any) -> Any:
        found = real(*given)
        left[0] -= 1
        if left[0] == 0 or where == "_rename":
            monkeypatch.setattr(constraints, where, real)
            signal.raise_signal(signal.SIGINT)
        return found

    monkeypatch.setattr(constraints, where, then_interrupted)
    with pytest.raises(KeyboardInterrupt), constraints.put_aside(COLUMNS):
        pytest.fail("it was interrupted before")
    assert guarded.is_as_before()


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_on_the_way_back_waits_until_it_is_back(
    guarded: Guarded, constraints: Constraints, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = constraints._ask

    def interrupted_first(statement: Any) -> Any:
        monkeypatch.setattr(constraints, "_ask", real)
        signal.raise_signal(signal.SIGINT)
        return real(statement)

    with pytest.raises(KeyboardInterrupt), constraints.put_aside(COLUMNS):
        monkeypatch.setattr(constraints, "_ask", interrupted_first)
    assert guarded.is_as_before()


@pytest.mark.usefixtures("interruptible")
def test_who_insists_is_told_what_is_left_and_how_it_is_put_back(
    guarded: Guarded, constraints: Constraints, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hangs(statement: Any) -> Any:
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
        pytest.fail("the third one means it")

    with pytest.raises(TableLeftAside) as caught, constraints.put_aside(COLUMNS):
        monkeypatch.setattr(constraints, "_ask", hangs)
    assert guarded.is_aside()
    assert f"It is kept as {guarded.kept}, with all its rows" in caught.value.holds
    for statement in caught.value.remedy.partition("By hand: ")[2].split("; "):
        guarded.stored.ask(statement)
    assert guarded.is_as_before()


def test_a_table_that_somebody_made_since_is_not_dropped(guarded: Guarded, constraints: Constraints) -> None:
    """After a kill the table was missed, and made anew; its rows are somebody's."""
    constraints._rename(constraints.table, constraints.table.kept)
    name = guarded.table.rpartition(".")[2]
    like = {
        "postgresql": f"CREATE TABLE {guarded.table} (LIKE {guarded.kept} INCLUDING ALL)",
        "mysql": f"CREATE TABLE {name} LIKE {guarded.kept}",
        "sqlite": f"CREATE TABLE {name} (scope, job_type, key, UNIQUE (scope, job_type, key))",
    }[constraints.table.dialect]
    guarded.stored.ask(like)
    assert constraints.bring_back(COLUMNS), "an empty one is what a kill can leave on the way"
    assert guarded.is_as_before()
    constraints._rename(constraints.table, constraints.table.kept)
    guarded.stored.ask(like)
    if constraints.table.dialect == "sqlite":
        guarded.stored.ask(f"INSERT INTO {name} VALUES ('', 'before', 'x')")
    else:
        once = semel.Once(guarded.target)
        with once.claim("since", 1):
            pass
        once.close()
    with pytest.raises(TableLeftAside, match="there is another one now, with rows") as caught:
        constraints.bring_back(COLUMNS)
    assert "Look at both" in caught.value.remedy
    assert guarded.is_aside()
