"""One job: what each act does in each status, and what it leaves on record."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta

import psycopg
import pytest

from semel.core.states import Status
from semel.errors import NotFound, WrongState
from semel.operate import cancel, carry_out, carry_out_async, delete, retry
from semel.sql import Catalogue
from semel.store.connect import connect_async
from semel.store.drivers.psycopg3 import PsycopgSession
from semel.store.jobs import Fence, claim, extend, settle
from semel.store.run import run
from semel.store.session import open_session
from semel.store.views import find_job, list_events

Insert = Callable[..., int]
ME = "ann@desk"


def status(session: PsycopgSession, job: int) -> str | None:
    row = session.connection.execute("SELECT status FROM semel.all_jobs WHERE id = %s", (job,)).fetchone()
    return None if row is None else row[0]


def events(session: PsycopgSession, job: int) -> list[tuple[str, str, str | None]]:
    return [(event.act, event.before, event.after) for event in run(list_events(job), session)]


@pytest.mark.parametrize("before", list(Status))
def test_retry(session: PsycopgSession, insert: Insert, before: Status) -> None:
    job = insert(status=before.value, attempts=5, unique_key="u")
    if before in (Status.PENDING, Status.RUNNING):
        with pytest.raises(WrongState, match=f"Job {job} is {before}; only"):
            carry_out(retry(job, who=ME), session)
        assert events(session, job) == []
        return
    acted = carry_out(retry(job, who=ME, why="mended"), session)
    assert (acted.before, acted.after, acted.new_id) == (before, Status.PENDING, None)
    assert events(session, job) == [("retry", before.value, "pending")]
    (taken,) = run(claim(worker=7, limit=1, lease=timedelta(60), max_crashes=3, queues=None), session).taken
    assert (taken.id, taken.attempt) == (job, 1)


@pytest.mark.parametrize("before", ["done", "cancelled"])
def test_a_job_of_the_history_runs_again_as_a_new_one(
    session: PsycopgSession, insert: Insert, before: str
) -> None:
    job = insert("jobs_done", status=before, payload='{"a": 1}', queue="mail", priority=5, kind="pay")
    acted = carry_out(retry(job, who=ME, why="again"), session)
    assert acted.new_id is not None
    assert acted.new_id != job
    assert f"as job {acted.new_id}" in acted.note
    record = run(find_job(acted.new_id), session)
    assert record is not None
    assert (record.job.status, record.job.queue, record.job.priority) == (Status.PENDING, "mail", 5)
    assert record.payload == {"a": 1}
    assert status(session, job) == before
    assert events(session, job) == [("retry", before, before)]
    assert events(session, acted.new_id) == [("retry", before, "pending")]


def test_a_copy_whose_unique_key_is_taken_is_refused(session: PsycopgSession, insert: Insert) -> None:
    job = insert("jobs_done", unique_key="u")
    insert(unique_key="u")
    with pytest.raises(WrongState, match="another job has its unique key"):
        carry_out(retry(job, who=ME), session)
    assert events(session, job) == []


@pytest.mark.parametrize("before", list(Status))
def test_cancel(session: PsycopgSession, insert: Insert, before: Status) -> None:
    job = insert(status=before.value)
    if before in (Status.DONE, Status.CANCELLED):
        with pytest.raises(WrongState):
            carry_out(cancel(job, who=ME), session)
        return
    acted = carry_out(cancel(job, who=ME), session)
    assert acted.after is Status.CANCELLED
    assert ("its claim is gone" in acted.note) is (before is Status.RUNNING)
    record = run(find_job(job), session)
    assert record is not None
    assert (record.job.status, record.in_history) == (Status.CANCELLED, True)
    assert record.job.finished_at is not None
    assert events(session, job) == [("cancel", before.value, "cancelled")]


@pytest.mark.parametrize("before", ["pending", "running", "failed"])
def test_a_cancelled_job_is_remembered_by_its_unique_key(
    session: PsycopgSession, insert: Insert, before: str
) -> None:
    job = insert(status=before, unique_key="u")
    carry_out(cancel(job, who=ME, remember=timedelta(hours=2)), session)
    row = session.connection.execute(
        "SELECT status, worker, locked_until, unique_until - clock_timestamp() FROM semel.jobs WHERE id = %s",
        (job,),
    ).fetchone()
    assert row is not None
    assert row[:3] == ("cancelled", None, None)
    assert timedelta(hours=1, minutes=59) < row[3] <= timedelta(hours=2)


def test_the_attempt_of_a_cancelled_job_has_lost_its_claim(session: PsycopgSession, insert: Insert) -> None:
    insert()
    insert(unique_key="u")
    taken = run(claim(worker=7, limit=2, lease=timedelta(60), max_crashes=3, queues=None), session).taken
    for one in taken:
        carry_out(cancel(one.id, who=ME), session)
    fences = [Fence(one.id, one.claim, one.worker) for one in taken]
    assert run(extend(fences, lease=timedelta(60)), session) == {(one.id, one.claim) for one in taken}
    assert run(settle(fences, [], remember=timedelta(1)), session) == frozenset()
    assert [status(session, one.id) for one in taken] == ["cancelled", "cancelled"]


@pytest.mark.parametrize("before", list(Status))
def test_delete(session: PsycopgSession, insert: Insert, before: Status) -> None:
    job = insert(status=before.value)
    if before is Status.RUNNING:
        with pytest.raises(WrongState, match=f"Job {job} is running"):
            carry_out(delete(job, who=ME), session)
        return
    carry_out(delete(job, who=ME, why="test data"), session)
    assert status(session, job) is None
    assert events(session, job) == [("delete", before.value, None)]
    with pytest.raises(NotFound, match=f"Job {job} is gone: {ME} did 'delete' at .*: test data"):
        carry_out(retry(job, who=ME), session)


def test_delete_from_the_history(session: PsycopgSession, insert: Insert) -> None:
    job, other = insert("jobs_done"), insert("jobs_done")
    carry_out(delete(job, who=ME), session)
    assert status(session, job) is None
    assert status(session, other) == "done"
    assert events(session, job) == [("delete", "done", None)]


@pytest.mark.parametrize("act", [retry, cancel, delete])
def test_an_act_on_a_job_that_is_not_there(session: PsycopgSession, act: Callable[..., object]) -> None:
    with pytest.raises(NotFound, match="There is no job 999"):
        carry_out(act(999, who=ME), session)


def test_an_act_is_fenced_on_the_status_that_was_seen(session: PsycopgSession, insert: Insert) -> None:
    job = insert(status="held")
    with pytest.raises(WrongState, match=f"Job {job} is held now, no longer failed"):
        carry_out(cancel(job, who=ME, seen=Status.FAILED), session)
    assert status(session, job) == "held"
    carry_out(cancel(job, who=ME, seen=Status.HELD), session)


def test_an_act_waits_for_the_row_and_then_sees_its_new_status(
    database_url: str, session: PsycopgSession, insert: Insert
) -> None:
    """The winner holds the row; the person's act must go by what the winner made of it."""
    job = insert(status="failed")
    caught: list[BaseException] = []

    def act() -> None:
        with open_session(database_url) as other:
            try:
                carry_out(retry(job, who=ME), other)
            except WrongState as error:
                caught.append(error)

    with session.connection.transaction():
        session.connection.execute("UPDATE semel.jobs SET status = 'pending' WHERE id = %s", (job,))
        loser = threading.Thread(target=act)
        loser.start()
        wait_for_a_lock(database_url)
    loser.join(10)
    assert "is pending" in str(caught[0])


def wait_for_a_lock(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as watcher:
        for _ in range(1000):
            rows = watcher.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchall()
            if rows:
                return
            watcher.execute("SELECT pg_sleep(0.01)")
    raise AssertionError("nobody waits")


def test_a_missing_day_of_the_history_is_made(session: PsycopgSession, insert: Insert) -> None:
    session.connection.execute(
        "DO $$ BEGIN EXECUTE format('DROP TABLE semel.jobs_done_%s', to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')); "
        "EXECUTE format('DROP TABLE IF EXISTS semel.jobs_done_%s', "
        "to_char(now() AT TIME ZONE 'UTC' + interval '1 day', 'YYYYMMDD')); END $$"
    )
    job = insert()
    assert carry_out(cancel(job, who=ME), session).after is Status.CANCELLED
    assert status(session, job) == "cancelled"
    assert events(session, job) == [("cancel", "pending", "cancelled")]


def test_the_same_acts_for_asyncio(database_url: str, insert: Insert, session: PsycopgSession) -> None:
    job = insert(status="failed")

    async def act() -> None:
        opened = await connect_async(database_url, Catalogue())
        try:
            await carry_out_async(retry(job, who=ME), opened)
            await carry_out_async(cancel(job, who=ME), opened)
        finally:
            await opened.connection.close()

    asyncio.run(act())
    assert [name for name, _, _ in events(session, job)] == ["retry", "cancel"]
