"""Every pair of statuses, by a plain UPDATE: the database lets through what core.states lists, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import psycopg
import pytest
from psycopg.errors import CheckViolation

from semel.core.states import LIVE, MOVES, Status, allowed


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_url, autocommit=True) as opened:
        yield opened


def insert(connection: psycopg.Connection, status: Status) -> int:
    row = connection.execute(
        "INSERT INTO semel.jobs (kind, status) VALUES ('k', %s) RETURNING id", (status.value,)
    ).fetchone()
    assert row is not None
    return int(row[0])


def test_every_pair_of_statuses(connection: psycopg.Connection) -> None:
    passed = set()
    for old, new in product(Status, repeat=2):
        job = insert(connection, old)
        refusal = move(connection, job, new)
        if refusal is None:
            passed.add((old, new))
            check_row(connection, job, old, new)
            continue
        assert refusal.diag.constraint_name == "jobs_moves"
        assert (refusal.diag.schema_name, refusal.diag.table_name) == ("semel", "jobs")
        assert f"job {job} cannot go from {old} to {new}" in str(refusal)
    assert passed == {pair for pair in product(Status, repeat=2) if allowed(*pair)}
    assert passed == set(MOVES) | {(status, status) for status in Status}


def move(connection: psycopg.Connection, job: int, new: Status) -> CheckViolation | None:
    try:
        connection.execute("UPDATE semel.jobs SET status = %s WHERE id = %s", (new.value, job))
    except CheckViolation as error:
        return error
    return None


def check_row(connection: psycopg.Connection, job: int, old: Status, new: Status) -> None:
    """Whoever moves a job: the lease goes with running, finished_at comes with leaving live."""
    row = connection.execute(
        "SELECT status, locked_until IS NOT NULL, finished_at IS NOT NULL, live, claim FROM semel.jobs WHERE id = %s",
        (job,),
    ).fetchone()
    assert row is not None
    status, leased, finished, live, claim = row
    assert status == new
    assert leased is (new is Status.RUNNING)
    assert finished is (new not in LIVE)
    assert live is (new in LIVE)
    assert (claim > 0) is (Status.RUNNING in (old, new))


def test_an_unknown_status_is_refused(connection: psycopg.Connection) -> None:
    job = insert(connection, Status.RUNNING)
    with pytest.raises(CheckViolation):
        connection.execute("UPDATE semel.jobs SET status = 'lost' WHERE id = %s", (job,))
    with pytest.raises(CheckViolation):
        connection.execute("INSERT INTO semel.jobs (kind, status) VALUES ('k', 'lost')")


def test_each_foreign_claim_has_a_number_of_its_own(connection: psycopg.Connection) -> None:
    job = insert(connection, Status.PENDING)
    claims = []
    for _ in range(3):
        connection.execute("UPDATE semel.jobs SET status = 'running' WHERE id = %s", (job,))
        row = connection.execute("SELECT claim, worker FROM semel.jobs WHERE id = %s", (job,)).fetchone()
        assert row is not None
        assert row[1] is None
        claims.append(row[0])
    assert claims == sorted(set(claims))


def test_a_running_job_keeps_its_lease(connection: psycopg.Connection) -> None:
    job = insert(connection, Status.RUNNING)
    with pytest.raises(CheckViolation) as caught:
        connection.execute("UPDATE semel.jobs SET locked_until = NULL WHERE id = %s", (job,))
    assert caught.value.diag.constraint_name == "jobs_running_has_lease"
