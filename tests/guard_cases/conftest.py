"""A guarded function to deliver, kill and rival with, on each of the guard's databases, and a clock to move on.

A test is named by the entry of docs/adr/0006-failure-modes-and-cases.md that it shows.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.guard.conftest import make_database, mariadb, own_mariadb
from tests.guard.mariadb import connect_to
from tests.guard.stored import DIALECTS

import semel

__all__ = ["make_database", "mariadb", "own_mariadb"]
TIMES = (
    *("claimed_at", "lease_until", "acting_at", "unsure_until", "reference_at"),
    *("created_at", "changed_at", "completed_at"),
)


EARLIER = {
    "postgresql": "{0} - make_interval(secs => {1})",
    "mysql": "{0} - INTERVAL {1} SECOND",
    "sqlite": "{0} - {1}",
}


def dialect_of(target: str) -> str:
    scheme = target.partition("://")[0]
    return scheme if scheme in DIALECTS else "sqlite"


def connect(target: str) -> Any:
    """A plain connection in autocommit, to look at what is stored."""
    match dialect_of(target):
        case "postgresql":
            return psycopg.connect(target, autocommit=True)
        case "mysql":
            return connect_to(target, autocommit=True)
    return sqlite3.connect(target, isolation_level=None, timeout=30, check_same_thread=False)


def execute(connection: Any, text: str) -> None:
    """One statement, on any driver's connection."""
    cursor = connection.cursor()
    cursor.execute(text)
    cursor.close()


def die() -> None:
    """As the kernel ends a process that is out of memory."""
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Case:
    """One operation's job type, and the world it acts on."""

    target: str
    effects_file: Path
    job: str = field(default_factory=lambda: f"job-{secrets.token_hex(8)}")
    hooks: dict[str, Callable[[], object]] = field(default_factory=dict)
    """What happens at a point of the next run, once: "claimed", "acting", "acted", "done"."""

    def __post_init__(self) -> None:
        self.once = semel.Once(self.target)
        self.connection = connect(self.target)
        self.dialect = dialect_of(self.target)
        self.words = DIALECTS[self.dialect]
        self.operations, self.history = self.words.operations, self.words.events

    def effect(self, what: object) -> None:
        """The effect, outside the database: seen by every process, and never taken back."""
        number = os.open(self.effects_file, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
        os.write(number, f"{what}\n".encode())
        os.close(number)

    @property
    def effects(self) -> list[str]:
        return self.effects_file.read_text().splitlines() if self.effects_file.exists() else []

    def at(self, point: str) -> None:
        hook = self.hooks.pop(point, None)
        if hook is not None:
            hook()

    def charge(self, effect: Any = None, **options: Any) -> Any:
        """A function that charges an order, guarded; the effect's line is the reference it charged with."""
        given: dict[str, Any] = {"key": "order", "acting": "explicit", "lease": "60 s"}

        @self.once.operation(self.job, effect=effect, **(given | options))
        def charge(op: semel.Operation, order: Any, amount: Any = 10) -> Any:
            self.at("claimed")
            with op.acting():
                self.at("acting")
                self.effect(op.reference)
                self.at("acted")
            result = op.done(f"charge of {order}")
            self.at("done")
            return result

        return charge

    def claim(self, effect: Any = None, *key: Any, **options: Any) -> Any:
        """An attempt as a block, to be entered and left when the test says so."""
        given: dict[str, Any] = {"acting": "explicit", "lease": "60 s"}
        return self.once.claim(self.job, *(key or (1,)), effect=effect, **(given | options))

    def dies(self, point: str, call: Callable[[], object]) -> None:
        """Deliver in another process, which is killed with SIGKILL at a point."""
        child = os.fork()
        if child == 0:
            try:
                self.hooks = {point: die}
                call()
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), "the process lived on"
        assert os.WTERMSIG(status) == signal.SIGKILL

    def later(self, seconds: float) -> None:
        """Let time pass: everything that is stored becomes so much older."""
        earlier = EARLIER[self.dialect]
        sets = ", ".join(f"{name} = {earlier.format(name, seconds)}" for name in TIMES)
        self.ask(f"UPDATE {self.operations} SET {sets} WHERE job_type = '{self.job}'")

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = self.connection.cursor()
        cursor.execute(statement)
        return list(cursor.fetchall()) if cursor.description else []

    def column(self, name: str) -> Any:
        """Of the only record of this job type."""
        column = f"`{name}`" if self.dialect == "mysql" else name  # key is a word of SQL's there
        rows = self.ask(f"SELECT {column} FROM {self.operations} WHERE job_type = '{self.job}'")
        assert len(rows) == 1
        return rows[0][0]

    @property
    def state(self) -> str:
        return str(self.column("state"))

    @property
    def outcome(self) -> Any:
        return self.column("outcome")

    def events(self) -> list[str]:
        rows = self.ask(f"SELECT event FROM {self.history} WHERE job_type = '{self.job}' ORDER BY id")
        return [str(row[0]) for row in rows]

    def evidence(self) -> list[Any]:
        rows = self.ask(
            f"SELECT detail FROM {self.history} WHERE job_type = '{self.job}' AND event = 'evidence' ORDER BY id"
        )
        return [json.loads(row[0]) if isinstance(row[0], str) else row[0] for row in rows]

    def records(self) -> int:
        return int(self.ask(f"SELECT count(*) FROM {self.operations} WHERE job_type = '{self.job}'")[0][0])

    def close(self) -> None:
        self.once.close()
        self.connection.close()


@pytest.fixture(scope="module", params=list(DIALECTS))
def target(request: pytest.FixtureRequest, make_database: Callable[[str], Any]) -> str:
    """A database with the guard's tables, of each kind, as people give it to `Once`."""
    where = make_database(request.param)
    return where[0].url(where[1]) if request.param == "mysql" else str(where)


@pytest.fixture
def case(target: str, tmp_path: Path) -> Iterator[Case]:
    made = Case(target, tmp_path / "effects")
    yield made
    made.close()
