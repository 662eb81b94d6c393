"""A row, a lock or a time-out that is in the way costs itself only: no neighbour, no second run."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import psycopg
import pytest
from tests.worker.helpers import ask, drain, show, wait_until

from semel import App


@pytest.fixture
def app(database_url: str) -> App:
    return App(database_url, lease="1 s", poll=0.05, stop_grace="5 s")


def statuses(url: str) -> list[tuple[Any, ...]]:
    return ask(url, "SELECT status, crashes FROM semel.all_jobs ORDER BY id")


def is_asked_for(url: str) -> bool:
    """Whether the end of the job has just begun to wait for the lock: set free between two tries, the job may be rescued."""
    waiting = """SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
                 AND clock_timestamp() - query_start < interval '60 ms')"""
    return bool(ask(url, waiting)[0][0])


@pytest.mark.parametrize(
    ("column", "value"), [("run_at", "-infinity"), ("run_at", "0044-03-15 BC"), ("attempts", "2147483647")]
)
def test_a_row_that_cannot_be_read_back_takes_no_neighbour_with_it(
    app: App, database_url: str, column: str, value: str
) -> None:
    ran: list[int] = []

    @app.job
    def note(number: int = 0) -> None:
        ran.append(number)

    ask(database_url, f"INSERT INTO semel.jobs (kind, {column}) VALUES ('note', '{value}')")
    note.enqueue_many([(number,) for number in range(1, 6)])
    drain(app)
    assert sorted(ran) == [0, 1, 2, 3, 4, 5]
    assert statuses(database_url) == [("done", 0)] * 6


def test_a_row_that_somebody_locks_holds_up_no_other_and_runs_once(app: App, database_url: str) -> None:
    ran: list[int] = []
    ended = asyncio.Event()

    @app.job
    async def note(number: int) -> None:
        if number == 0:
            await ended.wait()
        ran.append(number)

    async def run() -> None:
        first = await note.aenqueue(0)
        async with app.worker(upkeep=False):
            await asyncio.to_thread(wait_until, lambda: show(database_url, first.id).job.status == "running")
            with psycopg.connect(database_url) as other:
                other.execute("SELECT FROM semel.jobs WHERE id = %s FOR UPDATE", (first.id,))
                ended.set()
                await note.aenqueue_many([(number,) for number in range(1, 41)])
                others = "SELECT count(*) FROM semel.jobs_done WHERE id <> %s"
                await asyncio.to_thread(
                    wait_until, lambda: ask(database_url, others, first.id) == [(40,)], limit=30
                )
                await asyncio.to_thread(wait_until, lambda: is_asked_for(database_url))
            await asyncio.to_thread(wait_until, lambda: show(database_url, first.id).job.status == "done")

    asyncio.run(run())
    assert sorted(ran) == list(range(41))


@pytest.mark.parametrize("setting", ["lock_timeout", "statement_timeout"])
def test_a_time_out_of_the_role_is_no_reason_to_run_again(app: App, database_url: str, setting: str) -> None:
    name = ask(database_url, "SELECT current_database()")[0][0]
    ask(database_url, f"ALTER DATABASE \"{name}\" SET {setting} = '200ms'")
    ran: list[str] = []
    ended = asyncio.Event()

    @app.job
    async def slow() -> None:
        await ended.wait()
        ran.append("slow")

    async def run() -> None:
        job = await slow.aenqueue()
        async with app.worker(upkeep=False):
            await asyncio.to_thread(wait_until, lambda: show(database_url, job.id).job.status == "running")
            with psycopg.connect(database_url) as other:
                other.execute("SELECT FROM semel.jobs WHERE id = %s FOR UPDATE", (job.id,))
                ended.set()
                await asyncio.sleep(2)  # longer than the lease: the lock is what is tried, not waited for
                await asyncio.to_thread(wait_until, lambda: is_asked_for(database_url))
            await asyncio.to_thread(wait_until, lambda: show(database_url, job.id).job.status == "done")
        assert show(database_url, job.id).job.crashes == 0

    asyncio.run(run())
    assert ran == ["slow"]


class Stop(BaseException):
    """What no ``except Exception`` stops."""


def test_an_error_or_a_policy_that_raises_past_exceptions_ends_its_job(app: App, database_url: str) -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise Stop

    def policy(error: BaseException, attempt: int) -> None:
        raise Stop

    @app.job(max_attempts=1)
    def unspeakable() -> None:
        raise Unspeakable

    @app.job(max_attempts=1, retry=policy)
    def undecided() -> None:
        raise ValueError

    unspeakable.enqueue()
    undecided.enqueue()
    drain(app)
    assert statuses(database_url) == [("failed", 0), ("failed", 0)]


def test_work_that_was_not_done_is_not_done(app: App, database_url: str) -> None:
    async def pay() -> None:
        raise AssertionError("nobody awaits it")

    def count() -> Any:
        yield 1

    @app.job(max_attempts=1)
    def forgets_to_await() -> Any:
        return pay()

    @app.job(max_attempts=1)
    async def forgets_to_await_once_more() -> Any:
        return pay()

    @app.job(max_attempts=1)
    def forgets_to_iterate() -> Any:
        return count()

    jobs = [job.enqueue() for job in (forgets_to_await, forgets_to_await_once_more, forgets_to_iterate)]
    with contextlib.suppress(RuntimeWarning):
        drain(app)
    for job in jobs:
        found = show(database_url, job.id).job
        assert found.status == "failed"
        assert "nothing of it ran" in (found.last_error or "")
