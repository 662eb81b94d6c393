"""Unique keys through a job's life: held while it waits and runs, remembered after, and free again at last."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests.worker.helpers import LIMIT, ask, drain, make_app, perform, show, until

from semel import App, Cancel, Enqueued
from semel.store.upkeep import finish_kept

MOVE = finish_kept(remember=timedelta(days=3))


@pytest.fixture
def ran() -> list[int]:
    return []


@pytest.fixture
def app(database_url: str, ran: list[int]) -> App:
    app = make_app(database_url)

    @app.job(max_attempts=1)
    async def charge(order: int, ends: str = "done") -> int:
        ran.append(order)
        if ends == "cancelled":
            raise Cancel
        if ends == "failed":
            raise RuntimeError
        return order

    return app


def enqueue(app: App, ends: str = "done", **options: object) -> Enqueued:
    return app.jobs["charge"].using(unique_key="order 7", **options).enqueue(7, ends)


@pytest.mark.parametrize("ends", ["done", "cancelled"])
def test_a_key_is_remembered_after_the_end_until_unique_until(
    database_url: str, app: App, ran: list[int], ends: str
) -> None:
    job = enqueue(app, ends, unique_for="1 h")
    drain(app)
    record = show(database_url, job.id)
    assert (record.job.status, record.in_history, record.job.finished_at is not None) == (ends, False, True)
    again = enqueue(app, ends)
    assert (again.id, again.created, again.status) == (job.id, False, ends)
    assert perform(database_url, MOVE) == 0
    ask(database_url, "UPDATE jobs SET unique_until = now() WHERE id = %s", job.id)
    assert perform(database_url, MOVE) == 1
    assert show(database_url, job.id).in_history
    assert show(database_url, job.id).result == record.result
    third = enqueue(app, ends)
    assert third.created
    drain(app)
    assert ran == [7, 7]


def test_without_unique_for_a_key_is_remembered_as_long_as_finished_jobs(database_url: str, app: App) -> None:
    job = enqueue(app)
    drain(app, keep_done="2 days")
    record = show(database_url, job.id)
    assert record.unique_until is not None
    assert record.job.finished_at is not None
    assert record.unique_until - record.job.finished_at == pytest.approx(
        timedelta(days=2), abs=timedelta(seconds=5)
    )


def test_a_key_whose_time_was_over_when_its_job_ended_is_free_at_once(database_url: str, app: App) -> None:
    job = enqueue(app, unique_for=0)
    drain(app)
    assert show(database_url, job.id).in_history
    assert enqueue(app).created


def test_a_dead_letter_holds_its_key(database_url: str, app: App) -> None:
    job = enqueue(app, "failed", unique_for=0)
    drain(app)
    assert perform(database_url, MOVE) == 0
    again = enqueue(app)
    assert (again.id, again.created, again.status) == (job.id, False, "failed")


def test_a_running_job_holds_its_key(database_url: str) -> None:
    app = make_app(database_url)
    began, go_on = asyncio.Event(), asyncio.Event()

    @app.job
    async def charge() -> None:
        began.set()
        await go_on.wait()

    async def work() -> None:
        async with app.worker(), asyncio.timeout(LIMIT):
            keyed = charge.using(unique_key="order 7", unique_for=0)
            job = await keyed.aenqueue()
            await began.wait()
            again = await keyed.aenqueue()
            assert (again.id, again.created, again.status) == (job.id, False, "running")
            go_on.set()
            await until(lambda: show(database_url, job.id).in_history)
            assert (await keyed.aenqueue()).created

    asyncio.run(work())


def test_a_worker_s_upkeep_moves_it(database_url: str, app: App) -> None:
    """What a foreign program ended moves, too."""
    foreign = ask(database_url, "INSERT INTO jobs (kind, status) VALUES ('alien', 'done') RETURNING id")[0][0]
    job = enqueue(app, unique_for="1 h")
    drain(app, upkeep=False)
    assert not show(database_url, job.id).in_history
    ask(database_url, "UPDATE jobs SET unique_until = now() WHERE id = %s", job.id)

    async def work() -> None:
        async with app.worker(), asyncio.timeout(LIMIT):
            await until(
                lambda: show(database_url, foreign).in_history and show(database_url, job.id).in_history
            )

    asyncio.run(work())
