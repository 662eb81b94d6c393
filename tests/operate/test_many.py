"""Many jobs: by filter, in batches, each taken once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from semel.core.report import JobFilter
from semel.core.states import Status
from semel.errors import ConfigurationError
from semel.operate import ManyActed, purge, retry_many
from semel.store.drivers.psycopg3 import PsycopgSession

Insert = Callable[..., int]
ME = "ann@desk"
HOUR = timedelta(hours=1)
FAILED = JobFilter(statuses=frozenset({Status.FAILED}))


def count(session: PsycopgSession, condition: str, table: str = "jobs") -> int:
    row = session.connection.execute(f"SELECT count(*) FROM semel.{table} WHERE {condition}").fetchone()
    assert row is not None
    return int(row[0])


@pytest.fixture
def failed(session: PsycopgSession) -> int:
    session.connection.execute(
        "INSERT INTO semel.jobs (kind, status, attempts, last_error, finished_at) "
        "SELECT CASE WHEN n % 2 = 0 THEN 'even' ELSE 'odd' END, 'failed', 8, 'error ' || n, "
        "now() - n * interval '1 minute' FROM generate_series(1, 2500) AS n"
    )
    return 2500


def test_all_failed_jobs_run_again_in_batches(session: PsycopgSession, failed: int, insert: Insert) -> None:
    held = insert(status="held")
    told: list[tuple[int, int]] = []
    acted = retry_many(
        session, JobFilter(), who=ME, why="back", progress=lambda done, total: told.append((done, total))
    )
    assert acted == ManyActed(failed, failed)
    assert told == [(1000, 2500), (2000, 2500), (2500, 2500)]
    assert count(session, "status = 'pending' AND attempts = 0 AND run_at <= now()") == failed
    assert count(session, f"id = {held} AND status = 'held'") == 1
    assert count(session, f"who = '{ME}' AND why = 'back' AND act = 'retry'", "job_events") == failed


def test_a_dry_run_only_counts(session: PsycopgSession, failed: int) -> None:
    assert retry_many(session, JobFilter(kind="even"), who=ME, dry_run=True) == ManyActed(1250, 0)
    assert count(session, "status = 'failed'") == failed
    assert count(session, "true", "job_events") == 0


@pytest.mark.usefixtures("failed")
def test_filters_narrow_what_runs_again(session: PsycopgSession) -> None:
    assert retry_many(session, JobFilter(error="ERROR 25"), who=ME).changed == 12
    ended = JobFilter(finished_before=timedelta(minutes=2000), kind="odd")
    assert retry_many(session, ended, who=ME, dry_run=True).matched == 250
    assert retry_many(session, JobFilter(queue="other"), who=ME) == ManyActed(0, 0)


def test_held_jobs_run_again_only_where_they_are_named(session: PsycopgSession, insert: Insert) -> None:
    insert(status="held")
    assert retry_many(session, JobFilter(), who=ME).matched == 0
    assert retry_many(session, JobFilter(statuses=frozenset({Status.HELD})), who=ME).changed == 1
    with pytest.raises(ConfigurationError, match="Jobs that are pending, done cannot be retried in bulk"):
        retry_many(session, JobFilter(statuses=frozenset({Status.DONE, Status.PENDING})), who=ME)


def test_rows_that_others_hold_are_left(session: PsycopgSession, database_url: str, failed: int) -> None:
    with psycopg.connect(database_url) as other:
        other.execute("SELECT 1 FROM semel.jobs ORDER BY id LIMIT 10 FOR UPDATE")
        assert retry_many(session, FAILED, who=ME) == ManyActed(failed, failed - 10)


def test_a_job_that_fails_again_meanwhile_is_not_taken_twice(session: PsycopgSession, failed: int) -> None:
    def fail_again(done: int, total: int) -> None:
        session.connection.execute("UPDATE semel.jobs SET status = 'running' WHERE status = 'pending'")
        session.connection.execute("UPDATE semel.jobs SET status = 'failed' WHERE status = 'running'")

    acted = retry_many(session, FAILED, who=ME, progress=fail_again)
    assert acted == ManyActed(failed, failed)
    assert count(session, "true", "job_events") == failed


def test_purge_deletes_what_ended_long_ago(session: PsycopgSession, failed: int, insert: Insert) -> None:
    session.connection.execute("SELECT semel.make_history_day(CAST(now() AS date) - 1)")
    old = datetime.now(UTC).replace(hour=0, minute=0) - timedelta(hours=2)
    for _ in range(3):
        insert("jobs_done", finished_at=old)
    kept = insert("jobs_done")
    cutoff = datetime.now(UTC).replace(hour=0, minute=0) - timedelta(hours=1)
    done = frozenset({Status.DONE, Status.CANCELLED})
    assert purge(session, done, cutoff, who=ME, dry_run=True) == ManyActed(3, 0)
    assert purge(session, done, cutoff, who=ME, why="space") == ManyActed(3, 3)
    assert count(session, f"id <> {kept}", "jobs_done") == 0
    row = session.connection.execute("SELECT act, who, why, before FROM semel.job_events").fetchall()
    assert len(row) == 1
    assert row[0][:2] == ("purge", ME)
    assert "space (3 jobs, " in row[0][2]
    assert purge(session, frozenset({Status.FAILED}), timedelta(minutes=1250.5), who=ME).changed == 1250
    assert count(session, "status = 'failed'") == failed - 1250
    assert count(session, "act = 'purge' AND before = 'failed'", "job_events") == 1250


def test_purge_in_batches_of_the_history(session: PsycopgSession) -> None:
    session.connection.execute(
        "INSERT INTO semel.jobs (kind, status, unique_key) SELECT 'k', 'done', 'u' || n FROM generate_series(1, 10) n"
    )
    session.connection.execute(
        "INSERT INTO semel.jobs_done SELECT n, 'k', '{}', 'done', 1, 8, now(), NULL, NULL, NULL, now(), 'default', NULL, "
        "NULL, 0, 1, NULL, 0, now(), NULL, '[]', NULL FROM generate_series(100, 2599) n"
    )
    told: list[tuple[int, int]] = []
    acted = purge(
        session, frozenset({Status.DONE}), timedelta(0), who=ME, progress=lambda *at: told.append(at)
    )
    assert acted == ManyActed(2500, 2500)
    assert told == [(1000, 2500), (2000, 2500), (2500, 2500)]
    assert count(session, "true", "jobs_done") == 0


def test_purge_keeps_remembered_unique_keys(session: PsycopgSession, insert: Insert) -> None:
    past = datetime.now(UTC) - HOUR
    kept = insert(status="done", unique_key="a", unique_until=datetime.now(UTC) + HOUR, finished_at=past)
    foreign = insert(status="done", unique_key="c", finished_at=past)
    insert(status="done", unique_key="b", unique_until=past, finished_at=past)
    insert(status="failed", unique_key="d", finished_at=past)
    statuses = frozenset({Status.DONE, Status.FAILED})
    assert purge(session, statuses, timedelta(minutes=5), who=ME) == ManyActed(2, 2)
    assert count(session, f"id IN ({kept}, {foreign})") == 2
    assert count(session, "true") == 2


def test_purge_refuses_what_lives(session: PsycopgSession) -> None:
    with pytest.raises(ConfigurationError, match="Jobs that are running cannot be purged"):
        purge(session, frozenset({Status.RUNNING}), HOUR, who=ME)
    with pytest.raises(ConfigurationError, match="at least one status"):
        purge(session, frozenset(), HOUR, who=ME)
