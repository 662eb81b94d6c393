"""What the records say of runs, on each database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.guard.conftest import DIALECTS, make_database, mariadb  # noqa: F401

import semel
from semel.core.operations import State
from semel.store.measures import count_open, has_unique_key, measure_runs, read_server
from semel.store.own_connections import OwnSessions, open_own
from semel.store.run import run

SECOND = timedelta(seconds=1)


@pytest.fixture(params=DIALECTS)
def own(request: pytest.FixtureRequest, make_database: Callable[[str], Any]) -> Iterator[OwnSessions]:  # noqa: F811
    made = make_database(request.param)
    target = made[0].url(made[1]) if request.param == "mysql" else made
    found = open_own(target)
    found.target = target  # type: ignore[attr-defined]
    yield found
    found.close()


def ask(own: OwnSessions, operation: Any) -> Any:
    with own.session() as session:
        return run(operation, session)


def shift(own: OwnSessions, job_type: str, column: str, seconds: float) -> None:
    """Move a time of the newest record of a type."""
    table = "semel.operations" if own.dialect == "postgresql" else "semel_operations"
    moved = {
        "postgresql": f"{column} + make_interval(secs => {seconds})",
        "mysql": f"{column} + INTERVAL {seconds} SECOND",
        "sqlite": f"{column} + ({seconds})",
    }[own.dialect]
    with own.session() as session:
        newest = session.run_text(f"SELECT max(id) FROM {table} WHERE job_type = '{job_type}'")
        number = newest.fetchone()[0] if hasattr(newest, "fetchone") else newest[0][0]  # type: ignore[index, union-attr]
        session.run_text(f"UPDATE {table} SET {column} = {moved} WHERE id = {number}")


def make(own: OwnSessions, job_type: str, runs: list[float], *, past_lease: int = 0) -> None:
    """Operations that took so many seconds; the last ``past_lease`` of them completed 5 s after their lease."""
    once = semel.Once(own.target)  # type: ignore[attr-defined]
    for number, took in enumerate(runs):
        with once.claim(job_type, number):
            pass
        shift(own, job_type, "claimed_at", -took)
        if number >= len(runs) - past_lease:
            shift(own, job_type, "lease_until", -65)
    once.close()


def test_runs_are_measured_from_claim_to_completion(own: OwnSessions) -> None:
    make(own, "charge", [float(number) for number in range(1, 201)], past_lease=3)
    make(own, "mail", [7.0])
    with semel.Once(own.target).claim("open", 1), own.session() as session:  # type: ignore[attr-defined]
        charge, mail = run(measure_runs(within=timedelta(days=1)), session)
    assert (charge.job_type, charge.count, charge.past_lease) == ("charge", 200, 3)
    assert abs(charge.longest - 200 * SECOND) < 2 * SECOND
    assert abs(charge.p99 - 198 * SECOND) < 2 * SECOND, "the nearest rank: 198 of 200"
    assert abs(charge.longest_past_lease - 5 * SECOND) < 3 * SECOND
    assert abs(charge.last - datetime.now(UTC)) < timedelta(minutes=2)
    assert (mail.count, mail.past_lease, mail.longest_past_lease) == (1, 0, timedelta(0))
    assert abs(mail.p99 - 7 * SECOND) < 2 * SECOND
    only = ask(own, measure_runs("mail", within=timedelta(days=1)))
    assert [each.job_type for each in only] == ["mail"]
    assert ask(own, measure_runs("nobody", within=timedelta(days=1))) == ()


def test_only_what_completed_within_the_time_counts(own: OwnSessions) -> None:
    make(own, "old", [1.0, 2.0])
    shift(own, "old", "completed_at", -7200)
    (found,) = ask(own, measure_runs("old", within=timedelta(hours=1)))
    assert found.count == 1


def test_what_is_open_is_counted_by_state(own: OwnSessions) -> None:
    once = semel.Once(own.target)  # type: ignore[attr-defined]
    with pytest.raises(OSError, match="lost"):
        with once.claim("unsure", 1):
            raise OSError("lost")
    with pytest.raises(semel.NotDone):
        with once.claim("undone", 1):
            raise semel.NotDone("it was refused")
    once.close()
    shift(own, "unsure", "lease_until", -7200)
    found = {
        (each.job_type, each.state): each
        for each in ask(own, count_open())
        if each.job_type in ("unsure", "undone")
    }
    assert found.keys() == {("unsure", State.CLAIMED), ("undone", State.RELEASED)}
    assert abs(found["unsure", State.CLAIMED].longest - 7200 * SECOND) < 60 * SECOND


def test_the_unique_constraint_is_seen_and_missed(own: OwnSessions) -> None:
    assert ask(own, has_unique_key()) is True
    with own.session() as session:
        if own.dialect == "postgresql":
            session.run_text("ALTER TABLE semel.operations DROP CONSTRAINT operations_once")
        elif own.dialect == "mysql":
            session.run_text("ALTER TABLE semel_operations DROP INDEX semel_operations_once")
        else:
            session.run_text("CREATE TABLE copied AS SELECT * FROM semel_operations")
            session.run_text("DROP TABLE semel_operations")
            session.run_text("ALTER TABLE copied RENAME TO semel_operations")
    assert ask(own, has_unique_key()) is False
    with own.session() as session:
        table = "semel.operations" if own.dialect == "postgresql" else "semel_operations"
        session.run_text(f"DROP TABLE {table}")
    assert ask(own, has_unique_key()) is None


def test_the_server_says_its_version(own: OwnSessions) -> None:
    version, *_ = ask(own, read_server())
    assert version[0].isdigit()
