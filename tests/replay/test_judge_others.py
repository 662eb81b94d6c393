"""A job without a guard, and under guards of other kinds: which checks fail, and that no other one does."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.brokers import Redis, shared_redis
from tests.replay.judging import describe, run_replay
from tests.support.keeping import run_directory

from semel.replay.description import Command, Control, GuardPlace, Watch

pytestmark = pytest.mark.timeout(600)

KNOWN_WHERE = {"killed-past-claim", "late-completion", "late-look", "lost-connection", "lost-answer", "redo"}
"""Checks of what only semel's guard shows."""
ONE_AFTER_ANOTHER = {
    "three-deliveries",
    "killed-past-completion",
    "killed-on-return",
    "exception-after-effect",
}


@dataclass(frozen=True)
class Other:
    """A function of ``jobs/others.py``, and what it fails."""

    function: str
    fails: set[str]
    guard: GuardPlace = field(default_factory=GuardPlace)


OTHERS = (
    Other("nothing", {*ONE_AFTER_ANOTHER, "two-at-once", "young-claim", "old-claim"}),
    Other("in_memory", {"two-at-once", "young-claim", *ONE_AFTER_ANOTHER} - {"three-deliveries"}),
    Other(
        "redis_lock",
        {*ONE_AFTER_ANOTHER, "old-claim", "paused-past-lease"},
        GuardPlace(lease="2.5 s"),
    ),
    Other(
        "redis_mark",
        {
            "killed-on-return",
            "killed-past-completion",
            "exception-after-effect",
            "paused-past-lease",
        },
        GuardPlace(lease="2.5 s"),
    ),
    Other(
        "select_then_act",
        {"two-at-once", "young-claim", "killed-on-return", "exception-after-effect"},
    ),
    Other("row_deleted_on_error", {"killed-on-entry", "old-claim", "exception-after-effect"}),
    Other("done_before_the_effect", {"killed-on-entry", "old-claim"}),
)


@pytest.fixture
def redis(request: pytest.FixtureRequest) -> Redis:
    return shared_redis(*run_directory(request))


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: other.function)
def test_it_fails_where_it_is_weak_and_nowhere_else(
    other: Other, folder: Path, request: pytest.FixtureRequest
) -> None:
    environment = {}
    if "redis" in other.function:
        environment["REDIS"] = request.getfixturevalue("redis").new_url()
    description = describe(
        f"others:{other.function}",
        guarded=False,
        target=folder / "other.db",
        environment=environment,
        guard=other.guard,
        watch=Watch(call="provider.charge", dwell="300 ms" if "redis" in other.function else "5 ms"),
    )

    seen = run_replay(folder, description)

    assert {name.removesuffix("-parent") for name in seen.fails} == other.fails, seen.told()
    assert not seen.vacuous, seen.told()
    assert seen.skipped > KNOWN_WHERE, seen.told()
    assert not seen.run.holds


def test_a_command_is_killed_as_a_process_and_as_a_group(folder: Path) -> None:
    description = describe(
        "others:nothing", guarded=False, deliver=Command(command=["python", "-m", "others", "{order_id}"])
    )

    seen = run_replay(folder, description, only=("killed-on", "three", "young"))

    assert seen.fails == {
        "killed-on-return-child",
        "killed-on-return-group",
        "three-deliveries",
        "young-claim",
    }
    assert seen.holds == {"killed-on-entry-child", "killed-on-entry-group"}, seen.told()


def test_another_guard_has_its_control_by_the_environment(folder: Path) -> None:
    """Its table is known, so the constraint is looked up, and without it two at once go red."""
    target = folder / "other.db"
    description = describe(
        "others:behind_a_flag",
        guarded=False,
        target=target,
        control=Control(environment={"UNGUARDED": "1"}),
        guard=GuardPlace(table="claims", columns=["order_id"], database=str(target)),
    )
    make_claims(target)

    seen = run_replay(folder, description, only=("two-at-once", "constraint"), constraint=True)

    assert seen.check("two-at-once").evidence.control == 2
    assert seen.holds == {"two-at-once", "constraint", "without-constraint"}, seen.told()


def make_claims(target: Any) -> None:
    import sqlite3

    with sqlite3.connect(target) as connection:
        connection.execute("CREATE TABLE claims (order_id INTEGER PRIMARY KEY)")
    connection.close()
