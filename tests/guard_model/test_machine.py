"""The state machine over the record: 10,000 steps, and it finds what is broken on purpose."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.guard.stored import Stored
from tests.guard_model.machine import Machine

from semel import Once
from semel.core.operations import Move
from semel.guard import delivery
from semel.store import guard_end
from semel.store.guard_tables import create_tables

PHASES = [Phase.generate, *([Phase.shrink] if os.environ.get("SEMEL_SHRINK") else [])]
"""Making a failing example smaller takes minutes; SEMEL_SHRINK=1 asks for it."""

QUICK = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck), "phases": PHASES}


@pytest.fixture
def machine(tmp_path, caplog):
    caplog.set_level("CRITICAL", logger="semel.guard")
    path = tmp_path / "semel.db"
    create_tables(path)
    once, stored = Once(path), Stored.at("sqlite", path)
    stored.ask("PRAGMA journal_mode = WAL")
    stored.ask("PRAGMA synchronous = OFF")

    class Own(Machine):
        steps = 0

    Own.once, Own.stored = once, stored
    yield Own
    once.close()
    stored.close()


@pytest.mark.timeout(170)
def test_ten_thousand_steps(machine):
    run_state_machine_as_test(machine, settings=settings(max_examples=300, stateful_step_count=50, **QUICK))
    assert machine.steps >= 10_000


def _never_fenced(request):
    operation = REAL_ACT(request)

    def steps():
        yield from operation.steps()
        return True

    return type(operation)(operation.name, steps, alone=True)


REAL_ACT = guard_end.act
BROKEN = {
    "acting without its fence": lambda patch: patch.setattr(guard_end, "act", _never_fenced),
    "every exception releases": lambda patch: patch.setattr(delivery, "failed", lambda **_: Move.RELEASE),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_broken_is_found(machine, monkeypatch, broken):
    BROKEN[broken](monkeypatch)
    options = settings(max_examples=400, stateful_step_count=50, print_blob=False, **QUICK)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=options)
