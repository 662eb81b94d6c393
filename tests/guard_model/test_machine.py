"""The state machine over the record: 10,000 steps, a third on each database, and it finds what is broken on purpose."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.guard.stored import Stored
from tests.guard_model.rules import Machine

from semel import Once
from semel.core.operations import Move
from semel.guard import delivery
from semel.store import guard_begin, guard_end

PHASES = [Phase.generate, *([Phase.shrink] if os.environ.get("SEMEL_SHRINK") else [])]
"""Making a failing example smaller takes minutes; SEMEL_SHRINK=1 asks for it."""

QUICK = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck), "phases": PHASES}
SHARES = {(dialect, part): 1_112 for dialect in ("postgresql", "mysql", "sqlite") for part in ("1", "2", "3")}
"""Steps on each database, in three tests that can run at once: 10,000 in all."""


def begin_row(dialect: str, where: Any) -> Any:
    """A connection whose transaction has begun, or begins by itself."""
    if dialect == "postgresql":
        return psycopg.connect(where)
    if dialect == "mysql":
        return where[0].connect(where[1])
    connection = sqlite3.connect(where, isolation_level=None, timeout=0.05)
    try:
        connection.execute("BEGIN IMMEDIATE")
    except BaseException:
        connection.close()
        raise
    return connection


def make_machine(dialect: str, where: Any) -> Any:
    once = Once(where[0].url(where[1]) if dialect == "mysql" else where)
    stored = Stored.at(dialect, where)
    if dialect == "sqlite":
        stored.ask("PRAGMA journal_mode = WAL")
        stored.ask("PRAGMA synchronous = OFF")
    stored.ask("CREATE TABLE effects (name varchar(200))")

    class Own(Machine):
        most_rivals = 2 if dialect == "mysql" else 1_000_000

    Own.once, Own.stored = once, stored
    Own.begin_row = staticmethod(lambda: begin_row(dialect, where))
    yield Own
    once.close()
    stored.close()


@pytest.fixture(params=SHARES, ids=" ".join)
def everywhere(request, make_database, caplog):
    caplog.set_level("CRITICAL", logger="semel.guard")
    dialect = request.param[0]
    for made in make_machine(dialect, make_database(dialect)):
        yield made, SHARES[request.param]


@pytest.fixture
def machine(make_database, caplog):
    caplog.set_level("CRITICAL", logger="semel.guard")
    yield from make_machine("sqlite", make_database("sqlite"))


@pytest.mark.timeout(300)
def test_ten_thousand_steps(everywhere):
    machine, share = everywhere
    while machine.steps < share:
        options = settings(max_examples=(share - machine.steps) // 45 + 1, stateful_step_count=50, **QUICK)
        run_state_machine_as_test(machine, settings=options)
    print(f"{machine.stored.dialect}: {machine.steps} steps, {machine.rows} Row() operations")
    assert machine.steps >= share
    assert machine.rows > 0


def test_the_shares_are_ten_thousand():
    assert sum(SHARES.values()) >= 10_000


def _never_fenced(request):
    operation = REAL_ACT(request)

    def steps():
        yield from operation.steps()
        return True

    return type(operation)(operation.name, steps, alone=True)


def _blind_to_a_commit_midway(row):
    return replace(REAL_RECORD(row), committed_midway=False, acting=False)


REAL_ACT = guard_end.act
REAL_RECORD = guard_begin.record_of
BROKEN = {
    "a commit midway is taken over": lambda patch: patch.setattr(
        guard_begin, "record_of", _blind_to_a_commit_midway
    ),
    "acting without its fence": lambda patch: patch.setattr(guard_end, "act", _never_fenced),
    "every exception releases": lambda patch: patch.setattr(delivery, "failed", lambda **_: Move.RELEASE),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_broken_is_found(machine, monkeypatch, broken):
    BROKEN[broken](monkeypatch)
    options = settings(max_examples=400, stateful_step_count=50, print_blob=False, **QUICK)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=options)
