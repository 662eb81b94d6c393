"""Guards that are as they should be hold in every check, on every database, sync and async; so none cries wolf."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.guard.stored import Stored
from tests.replay.judging import describe, run_replay

from semel.replay.description import Control, CountSql, Description, GuardPlace, SemelJob, Watch

pytestmark = pytest.mark.timeout(600)

CRASHES = ("old", "killed", "exception", "paused", "late", "lost", "redo")
KILLS = ("killed", "old")
OTHERS = (
    "three",
    "two",
    "look",
    "changed",
    "young",
    "exception",
    "paused",
    "late",
    "lost",
    "redo",
    "constraint",
)
SHOWN = Control(none="it is shown with the full runs")


@dataclass(frozen=True)
class Right:
    """One of the policies over one database."""

    policy: str
    acting: str
    dialect: str
    function: str = "charge"
    full: bool = False

    def __str__(self) -> str:
        return f"{self.policy}-{self.acting}-{self.dialect}-{self.function}"


RIGHT = (
    Right("hold", "explicit", "sqlite", full=True),
    Right("provider_key", "explicit", "postgresql", "charge_async", full=True),
    Right("lookup", "from_start", "mysql", full=True),
    Right("hold", "from_start", "postgresql", "charge_async"),
    Right("lookup", "explicit", "sqlite", "charge_async"),
    Right("provider_key", "from_start", "mysql", "charge_async"),
    Right("accept_duplicate", "explicit", "mysql"),
    Right("accept_duplicate", "from_start", "sqlite"),
    Right("accept_miss", "explicit", "sqlite"),
    Right("accept_miss", "from_start", "postgresql"),
)


@pytest.mark.parametrize("only", [KILLS, OTHERS], ids=["kills", "others"])
def test_a_job_of_semels_queue_holds(only: tuple[str, ...], folder: Path, database_url: str) -> None:
    """In two halves, since its workers take their time."""
    description = describe_queue("queue_app", database_url)

    seen = run_replay(folder, description, only=only, constraint=only is OTHERS)

    assert seen.run.holds, seen.told()
    assert not seen.fails | seen.vacuous
    if only is KILLS:
        assert {
            f"killed-on-{where}-{who}"
            for where in ("entry", "return")
            for who in ("child", "parent", "group")
        } <= seen.holds
    else:
        assert {"redo", "late-completion", "paused-past-lease", "without-constraint"} <= seen.holds


def test_messages_of_others_count_for_nothing(folder: Path, database_url: str) -> None:
    """With --shared, while others enqueue jobs of the same kind all the time."""
    description = describe_queue("queue_app", database_url)
    over = threading.Event()

    def enqueue_others() -> None:
        with psycopg.connect(database_url, autocommit=True) as connection:
            for number in itertools.count(1):
                connection.execute(
                    "INSERT INTO semel.jobs (kind, payload) VALUES ('charge', %s)",
                    (f'{{"order_id": {number}}}',),
                )
                if over.wait(0.1):
                    return

    others = threading.Thread(target=enqueue_others)
    others.start()
    try:
        seen = run_replay(folder, description, only=("three", "killed-on-return-child", "redo"), shared=True)
    finally:
        over.set()
        others.join(20)

    assert seen.holds == {"three-deliveries", "killed-on-return-child", "redo"}, seen.told()
    assert [sum(check.evidence.effects) for check in seen.code.checks] == [1, 1, 1]
    assert len(seen.received) > 20, "others were served meanwhile"


@pytest.mark.parametrize("right", RIGHT, ids=str)
def test_a_right_guard_holds(right: Right, folder: Path, make_database: Callable[[str], Any]) -> None:
    call = "provider.charge_async" if right.function == "charge_async" else "provider.charge"
    description = describe(
        f"guarded:{right.function}",
        target=target_of(right.dialect, make_database),
        watch=Watch(call=call, dwell="5 ms"),
        environment={"POLICY": right.policy, "ACTING": right.acting},
        rounds=8,
        control=Control() if right.full else SHOWN,
    )

    seen = run_replay(folder, description, only=() if right.full else CRASHES, constraint=right.full)

    assert seen.run.holds, seen.told()
    assert not seen.fails | seen.vacuous
    skipped = {"redo": right.policy != "hold", "late-look": right.policy != "lookup"}
    assert seen.skipped == {name for name, is_so in skipped.items() if is_so}
    if right.full:
        assert seen.check("two-at-once").evidence.overlapping == 8
        assert {"constraint", "without-constraint"} <= seen.holds
        assert seen.check("old-claim").evidence.lease_ended
        assert not seen.check("three-deliveries").evidence.lease_ended
    else:
        counted = sum(sum(check.evidence.effects) for check in seen.code.checks)
        assert counted == len(seen.received), "what replay counted is what the provider received"


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql", "mysql"])
def test_a_row_is_counted_where_it_is_committed(
    dialect: str, folder: Path, make_database: Callable[[str], Any]
) -> None:
    where = make_database(dialect)
    target = where[0].url(where[1]) if dialect == "mysql" else str(where)
    with closing(Stored.at(dialect, where)) as stored:
        stored.ask("CREATE TABLE effects (order_id bigint)")
    full = dialect == "postgresql"
    description = describe(
        "guarded:insert",
        target=target,
        watch=Watch(call="provider.insert", dwell="5 ms"),
        count=CountSql(query="SELECT count(*) FROM effects WHERE order_id = :order_id", database=target),
        rounds=8,
        control=Control() if full else SHOWN,
    )

    seen = run_replay(folder, description, only=() if full else ("two", "young", *CRASHES), constraint=full)

    assert seen.run.holds, seen.told()
    assert not seen.fails | seen.vacuous
    assert seen.skipped == {
        "killed-past-claim",
        "late-completion",
        "late-look",
        "lost-connection",
        "lost-answer",
        "redo",
    }


def test_a_hundred_rounds_overlap(folder: Path, make_database: Callable[[str], Any]) -> None:
    description = describe("guarded:charge", target=target_of("postgresql", make_database), rounds=100)

    seen = run_replay(folder, description, only=("two-at-once",))

    assert seen.holds == {"two-at-once"}, seen.told()
    assert seen.check("two-at-once").evidence.effects == [1] * 100
    assert len(set(seen.received)) >= 100


def test_a_redo_that_sends_the_message_first_is_caught(folder: Path, database_url: str) -> None:
    description = describe_queue("queue_broken", database_url)

    seen = run_replay(folder, description, only=("redo",))

    assert seen.fails == {"redo"}, seen.told()
    assert "a record ended as released, not as completed acted" in seen.reasons("redo")


def describe_queue(module: str, database_url: str) -> Description:
    """A guarded job of semel's own queue, in the module of its application."""
    return describe(
        f"{module}:charge",
        deliver=SemelJob(app=f"{module}:app", kind="charge"),
        environment={"SEMEL_DATABASE_URL": database_url},
        guard=GuardPlace(operation=f"{module}:charge", database=database_url),
        patience="40 s",
    )


def target_of(dialect: str, make_database: Callable[[str], Any]) -> str:
    where = make_database(dialect)
    return where[0].url(where[1]) if dialect == "mysql" else str(where)
