"""What people read: each filter, the pages, one job, the counts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from semel.core.report import JobFilter
from semel.core.states import Status
from semel.errors import ConfigurationError
from semel.operate import carry_out, retry
from semel.sql import Catalogue
from semel.store.drivers.psycopg3 import PsycopgSession
from semel.store.run import run
from semel.store.views import count_queues, find_job, list_jobs, list_schedules

Insert = Callable[..., int]
HOUR = timedelta(hours=1)


def ids(session: PsycopgSession, **wanted: object) -> list[int]:
    page = run(list_jobs(JobFilter(**wanted)), session)
    return [job.id for job in page.jobs]


def test_filters_find_what_they_say(session: PsycopgSession, insert: Insert) -> None:
    now = datetime.now(UTC)
    waiting = insert(queue="mail", unique_key="u1")
    failed = insert(
        status="failed", kind="pay", last_error="TimeoutError: 50% TIMED out", finished_at=now - 3 * HOUR
    )
    done = insert("jobs_done", kind="pay", queue="mail")
    remembered = insert(status="done", unique_key="u2")
    assert ids(session) == [remembered, done, failed, waiting]
    assert ids(session, statuses=frozenset({Status.DONE})) == [remembered, done]
    assert ids(session, statuses=frozenset({Status.PENDING, Status.RUNNING})) == [waiting]
    assert ids(session, statuses=frozenset({Status.FAILED, Status.HELD})) == [failed]
    assert ids(session, queue="mail") == [done, waiting]
    assert ids(session, kind="pay") == [done, failed]
    assert ids(session, unique_key="u1") == [waiting]
    assert ids(session, error="50% timed") == [failed]
    assert ids(session, error="_") == []
    assert ids(session, finished_before=2 * HOUR) == [failed]
    assert ids(session, finished_after=2 * HOUR) == [remembered, done]
    assert ids(session, finished_before=now - 2 * HOUR, kind="pay") == [failed]


def test_ages_are_counted_on_the_database_clock(session: PsycopgSession, insert: Insert) -> None:
    old = insert(created_at=datetime.now(UTC) - 2 * HOUR)
    old_done = insert("jobs_done", created_at=datetime.now(UTC) - 2 * HOUR)
    new, new_done = insert(), insert("jobs_done")
    assert ids(session, created_before=HOUR) == [old_done, old]
    assert ids(session, created_after=HOUR) == [new_done, new]
    with pytest.raises(ConfigurationError, match="no time zone"):
        JobFilter(created_after=datetime(2026, 1, 1))  # noqa: DTZ001


def test_pages_follow_one_another_through_both_tables(session: PsycopgSession, insert: Insert) -> None:
    stored = [insert("jobs_done" if number % 3 else "jobs") for number in range(10)]
    seen: list[int] = []
    before = None
    for _ in range(4):
        page = run(list_jobs(JobFilter(), limit=3, before_id=before), session)
        seen += [job.id for job in page.jobs]
        before = page.next_before_id
    assert seen == stored[::-1]
    assert before is None
    assert run(list_jobs(JobFilter(), limit=10), session).next_before_id is None


def test_one_job_with_everything(session: PsycopgSession, insert: Insert) -> None:
    job = insert(
        status="failed",
        payload='{"user_id": 1}',
        last_error="ValueError: no",
        errors='[{"attempt": 1, "type": "ValueError", "message": "no", "traceback": "Traceback …"}]',
        attempts=8,
    )
    session.connection.execute(
        "INSERT INTO semel.job_progress (job_id, attempt, fraction, message) VALUES (%s, 8, 0.5, 'half')",
        (job,),
    )
    carry_out(retry(job, who="ann@desk", why="fixed"), session)
    record = run(find_job(job), session)
    assert record is not None
    assert (record.job.status, record.job.attempts, record.in_history) == (Status.PENDING, 0, False)
    assert record.payload == {"user_id": 1}
    assert record.errors[0]["traceback"] == "Traceback …"
    assert (record.job.progress, record.job.progress_message) == (0.5, "half")
    (event,) = record.events
    assert (event.act, event.who, event.why, event.before, event.after) == (
        "retry",
        "ann@desk",
        "fixed",
        "failed",
        "pending",
    )
    past = insert("jobs_done", result='{"ok": true}')
    record = run(find_job(past), session)
    assert record is not None
    assert record.in_history
    assert record.result == {"ok": True}
    assert run(find_job(10**12), session) is None


def test_each_job_is_counted_once(session: PsycopgSession, insert: Insert) -> None:
    now = datetime.now(UTC)
    insert(run_at=now - HOUR)
    insert(run_at=now - HOUR, attempts=2)
    insert(run_at=now + HOUR)
    insert(run_at=now + HOUR, attempts=2)
    insert(status="running")
    insert(status="running", locked_until=now - HOUR)
    insert(status="failed")
    insert(status="held")
    insert(status="done", unique_key="u")
    insert("jobs_done")
    insert(queue="mail")
    overview = run(count_queues(history=True), session)
    default, mail = overview.queues
    counts = (default.due, default.delayed, default.retrying, default.running, default.expired)
    assert counts == (2, 1, 1, 1, 1)
    assert (default.failed, default.held, default.finished) == (1, 1, 1)
    assert default.oldest_due is not None
    assert timedelta(hours=1) <= default.oldest_due < timedelta(hours=1, minutes=5)
    assert (mail.queue, mail.due) == ("mail", 1)
    assert len(overview.history) == 8
    assert sum(day.bytes for day in overview.history) > 0


def test_conditions_say_what_a_job_waits_for(session: PsycopgSession, insert: Insert) -> None:
    now = datetime.now(UTC)
    insert(status="running", locked_until=now - HOUR)
    insert(status="running")
    insert(run_at=now + HOUR, attempts=1)
    insert(run_at=now + HOUR)
    insert()
    insert("jobs_done", status="cancelled")
    page = run(list_jobs(JobFilter()), session)
    assert [job.condition(page.as_of) for job in page.jobs] == [
        "cancelled",
        "due",
        "delayed",
        "retrying",
        "running",
        "expired",
    ]


def test_schedules_have_their_last_tick(session: PsycopgSession) -> None:
    session.connection.execute(
        "INSERT INTO semel.schedules (name, definition, kind) VALUES ('daily', '0 2 * * *', 'k'), ('new', 'x', 'k')"
    )
    session.connection.execute(
        "INSERT INTO semel.schedule_ticks (schedule, tick) VALUES ('daily', '2026-01-01Z'), ('daily', '2026-01-02Z')"
    )
    daily, new = run(list_schedules(), session)
    assert (daily.name, daily.last_tick) == ("daily", datetime(2026, 1, 2, tzinfo=UTC))
    assert new.last_tick is None


@pytest.fixture
def many(session: PsycopgSession) -> None:
    session.connection.execute(
        "INSERT INTO semel.jobs (kind, queue, status, last_error) "
        "SELECT 'k', 'q' || n % 5, CASE WHEN n % 1000 = 0 THEN 'failed' ELSE 'pending' END, 'boom' "
        "FROM generate_series(1, 50000) AS n"
    )
    session.connection.execute("ANALYZE semel.jobs")


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    ("live", "history", "statuses", "index"),
    [
        ("NOT live", "false", ["failed"], "jobs_finished"),
        ("true", "true", None, "jobs_pkey"),
        ("live", "false", ["pending"], "jobs_pkey"),
    ],
)
def test_lists_use_an_index(
    session: PsycopgSession, live: str, history: str, statuses: list[str] | None, index: str
) -> None:
    text = Catalogue().text("view/list_jobs", live=live, history=history).named
    names = ("queue", "kind", "unique_key", "error", "created_before", "created_after")
    parameters: dict[str, object] = dict.fromkeys((*names, "finished_before", "finished_after", "before_id"))
    rows = session.connection.execute(
        f"EXPLAIN {text}", parameters | {"statuses": statuses, "limit": 51}
    ).fetchall()
    plan = "\n".join(row[0] for row in rows)
    assert index in plan
    assert "Seq Scan on jobs " not in plan
