"""What a handler can know and say about its attempt."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.worker.helpers import LIMIT, ask, drain, make_app, show, status, until

from semel import App, Backoff, ClaimLost, JobContext, RetryPolicy, TimedOut
from semel.store.migrate import migrate_database

TAKE_OVER = "UPDATE jobs SET status = 'running', locked_until = now() + interval '1 hour' WHERE id = %s"


@pytest.fixture
def app(database_url: str) -> App:
    return make_app(database_url, lease="1 s")


def test_it_says_which_attempt_of_which_job_this_is(app: App) -> None:
    seen: list[JobContext] = []

    @app.job(context=True, timeout="1 min", retry=RetryPolicy(max_attempts=3, backoff=Backoff(base=0)))
    async def charge(context: JobContext) -> None:
        seen.append(context)
        raise RuntimeError

    job = charge.using(queue="bank").enqueue()
    drain(app)
    assert [context.attempt for context in seen] == [1, 2, 3]
    for context in seen:
        assert (context.job_id, context.kind, context.queue) == (job.id, "charge", "bank")
        assert (context.max_attempts, context.crashes, context.timeout) == (3, 0, timedelta(minutes=1))


def test_the_reference_is_one_over_all_attempts_and_differs_between_jobs_and_databases(
    app: App, empty_database_url: str
) -> None:
    references: dict[tuple[str, int], set[str]] = defaultdict(set)

    @app.job(context=True, retry=RetryPolicy(max_attempts=3, backoff=Backoff(base=0)))
    async def charge(context: JobContext, shop: str) -> None:
        references[shop, context.job_id].add(context.reference)
        raise RuntimeError

    migrate_database(empty_database_url)
    other = app.with_database(empty_database_url)
    for _ in range(2):
        app.jobs["charge"].enqueue("one")
        other.jobs["charge"].enqueue("two")
    drain(app)
    drain(app)
    drain(other)
    assert len(references) == 4
    assert all(len(each) == 1 for each in references.values())
    assert len(set.union(*references.values())) == 4


def test_the_deadline_follows_from_the_time_out(app: App) -> None:
    seen: list[Any] = []

    @app.job(context=True, timeout="10 s")
    def charge(context: JobContext) -> None:
        seen.extend((context.deadline, context.time_left, datetime.now(UTC)))

    @app.job(context=True, timeout=None)
    def endless(context: JobContext) -> None:
        seen.extend((context.deadline, context.time_left))

    charge.enqueue()
    drain(app)
    deadline, left, now = seen
    assert timedelta(seconds=8) < left <= timedelta(seconds=10)
    assert abs(deadline - now - left) < timedelta(seconds=1)
    endless.enqueue()
    drain(app)
    assert seen[3:] == [None, None]


@pytest.mark.parametrize("flavour", ["async", "sync"])
def test_check_ends_a_handler_past_its_time_out(app: App, database_url: str, flavour: str) -> None:
    """Also one that keeps the interruption from itself."""

    def work(context: JobContext) -> None:
        while True:
            context.check()

    async def work_async(context: JobContext) -> None:
        while True:
            context.check()

    handler = app.job(kind="work", context=True, timeout="300 ms")(work if flavour == "sync" else work_async)
    job = handler.enqueue()
    drain(app)
    assert show(database_url, job.id).errors[0]["type"] == f"{TimedOut.__module__}.TimedOut"


@pytest.mark.parametrize("flavour", ["async", "sync"])
def test_a_lost_claim_is_told_to_the_handler_and_nothing_is_written(
    app: App, database_url: str, caplog: pytest.LogCaptureFixture, flavour: str
) -> None:
    began, told = threading.Event(), []

    def tell(context: JobContext) -> None:
        told.append(context.lease_lost)
        with pytest.raises(ClaimLost):
            context.check()

    async def charge(context: JobContext) -> None:
        began.set()
        try:
            await asyncio.sleep(LIMIT)
        finally:
            tell(context)

    def charge_now(context: JobContext) -> None:
        began.set()
        try:
            while not threading.Event().wait(0.01):
                pass
        finally:
            tell(context)

    handler = app.job(kind="charge", context=True)(charge if flavour == "async" else charge_now)

    async def work() -> int:
        async with app.worker(), asyncio.timeout(LIMIT):
            job = await handler.aenqueue()
            await until(began.is_set)
            await asyncio.to_thread(ask, database_url, TAKE_OVER, job.id)
            await until(lambda: told, "the handler to hear of it")
        return job.id

    with caplog.at_level(logging.WARNING, "semel.worker"):
        record = show(database_url, asyncio.run(work()))
    assert told == [True]
    assert (record.job.status, record.job.attempts, record.errors) == ("running", 1, ())
    assert [line for line in caplog.records if getattr(line, "outcome", "") == "claim lost"]


def test_a_cancelled_job_is_told_to_its_handler(app: App, database_url: str) -> None:
    began, told = asyncio.Event(), []

    @app.job(context=True)
    async def charge(context: JobContext) -> None:
        began.set()
        try:
            await asyncio.sleep(LIMIT)
        finally:
            told.append(context.lease_lost)

    async def work() -> int:
        async with app.worker(), asyncio.timeout(LIMIT):
            job = await charge.aenqueue()
            await began.wait()
            sql = "UPDATE jobs SET status = 'cancelled' WHERE id = %s"
            await asyncio.to_thread(ask, database_url, sql, job.id)
            await until(lambda: told)
        return job.id

    assert status(database_url, asyncio.run(work())) == "cancelled"


@pytest.mark.parametrize("flavour", ["async", "sync"])
def test_progress_is_stored_and_shown_the_newest_only(app: App, database_url: str, flavour: str) -> None:
    go_on = threading.Event()

    def report(context: JobContext) -> None:
        context.progress(0.1, "began")
        context.progress(0.25, "a quarter \0")

    def charge(context: JobContext) -> None:
        report(context)
        assert go_on.wait(LIMIT)

    async def charge_async(context: JobContext) -> None:
        report(context)
        await asyncio.to_thread(go_on.wait, LIMIT)

    handler = app.job(kind="charge", context=True)(charge if flavour == "sync" else charge_async)

    def shown() -> tuple[Any, Any]:
        job = show(database_url, job_id).job
        return job.progress, job.progress_message

    async def work() -> None:
        async with app.worker() as worker, asyncio.timeout(LIMIT):
            nonlocal job_id
            job_id = (await handler.aenqueue()).id
            await until(lambda: shown() == (0.25, "a quarter \ufffd"), "the progress to be stored")
            go_on.set()
            await worker.drain()

    job_id = 0
    asyncio.run(work())
    assert status(database_url, job_id) == "done"


def test_its_log_lines_say_which_job_wrote_them(app: App, caplog: pytest.LogCaptureFixture) -> None:
    @app.job(context=True)
    async def charge(context: JobContext) -> None:
        context.log.info("charging", extra={"order": 7})

    job = charge.enqueue()
    with caplog.at_level(logging.INFO, "semel.job"):
        drain(app)
    (line,) = [record for record in caplog.records if record.message == "charging"]
    fields = line.__dict__
    assert (fields["job_id"], fields["kind"], fields["attempt"], fields["order"]) == (job.id, "charge", 1, 7)


def test_a_handler_sees_that_its_worker_stops(app: App, database_url: str) -> None:
    began = threading.Event()

    @app.job(context=True)
    def charge(context: JobContext) -> str:
        began.set()
        while True:
            try:
                while not context.stopping:
                    pass
                return "stopped in good order"
            except BaseException:  # keeps the interruption to itself, and ends by its own
                continue

    async def work() -> int:
        async with app.worker(stop_grace="1 s"), asyncio.timeout(LIMIT):
            job = await charge.aenqueue()
            await until(began.is_set)
        return job.id

    record = show(database_url, asyncio.run(work()))
    assert (record.job.status, record.result) == ("done", "stopped in good order")
