"""A worker inside an application: ``async with app.worker(): …``."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from tests.worker.helpers import LIMIT, ask, make_app, show, status, until

from semel import App, Backoff, JobContext, RetryPolicy, SchemaMismatch
from semel.store.statement import Operation


@pytest.fixture
def ran() -> list[int]:
    return []


@pytest.fixture
def app(database_url: str, ran: list[int]) -> App:
    app = make_app(database_url)

    @app.job
    async def charge(order: int) -> None:
        ran.append(order)

    @app.job
    def charge_now(order: int) -> None:
        ran.append(order)
        assert threading.current_thread() is not threading.main_thread()

    return app


def test_it_runs_async_and_sync_handlers(app: App, ran: list[int]) -> None:
    async def work() -> None:
        async with app.worker() as worker, asyncio.timeout(LIMIT):
            await app.jobs["charge"].aenqueue(1)
            await app.jobs["charge_now"].aenqueue(2)
            await worker.drain()
            assert sorted(ran) == [1, 2]

    asyncio.run(work())


def test_drain_sees_what_was_stored_before_it_was_called(app: App, ran: list[int]) -> None:
    """Also where the worker had looked, and found nothing, just before."""

    async def work() -> None:
        async with app.worker(poll="1 h") as worker, asyncio.timeout(LIMIT):
            await worker.drain()
            for order in range(20):
                await app.jobs["charge"].aenqueue(order)
                await worker.drain()
                assert ran[-1:] == [order]

    asyncio.run(work())


def test_drain_runs_a_job_that_is_due_again_while_the_worker_looks(app: App, database_url: str) -> None:
    """The answer to a look that began before the first attempt was written comes late: it has not seen the second."""
    looked = threading.Event()
    attempts: list[int] = []

    @app.job(context=True, retry=RetryPolicy(max_attempts=2, backoff=Backoff(base=0)))
    def declined(context: JobContext) -> None:
        attempts.append(context.attempt)
        assert looked.wait(LIMIT)
        raise RuntimeError

    async def work() -> int:
        async with app.worker(upkeep=False) as worker, asyncio.timeout(LIMIT):
            engine = worker._engine
            assert engine is not None
            at_once = engine._claim_link.run

            async def late(operation: Operation[Any]) -> Any:
                answer = await at_once(operation)
                if attempts == [1] and not looked.is_set():
                    looked.set()
                    await until(lambda: engine.board.empty, "the first attempt to be written")
                return answer

            engine._claim_link.run = late  # type: ignore[method-assign]
            job = await declined.aenqueue()
            await worker.drain(poll=0)
            assert attempts == [1, 2]
        return job.id

    assert status(database_url, asyncio.run(work())) == "failed"


def test_its_schedules_run(database_url: str) -> None:
    app = make_app(database_url)
    ticked = []

    @app.job
    @app.schedule(every="1 s")
    async def tick() -> None:
        ticked.append(time.monotonic())

    async def work() -> None:
        async with app.worker():
            await until(lambda: len(ticked) >= 2, "two ticks")

    asyncio.run(work())
    assert ticked[1] - ticked[0] > 0.5


def test_leaving_waits_for_what_runs(app: App, database_url: str) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    @app.job
    async def slow() -> str:
        began.set()
        await go_on.wait()
        return "in time"

    async def work() -> int:
        async with app.worker(), asyncio.timeout(LIMIT):
            job = await slow.aenqueue()
            await began.wait()
            asyncio.get_running_loop().call_later(0.2, go_on.set)
        return job.id

    record = show(database_url, asyncio.run(work()))
    assert (record.job.status, record.job.attempts, record.result) == ("done", 1, "in time")


def test_leaving_cancels_what_does_not_end_within_the_grace_and_charges_nothing(
    app: App, database_url: str
) -> None:
    began = asyncio.Event()

    @app.job
    async def slow() -> None:
        began.set()
        await asyncio.sleep(600)

    async def work() -> int:
        async with app.worker(stop_grace="1 s"), asyncio.timeout(LIMIT):
            job = await slow.aenqueue()
            await began.wait()
            nonlocal left
            left = time.monotonic()
        return job.id

    left = 0.0
    record = show(database_url, asyncio.run(work()))
    assert time.monotonic() - left < 3
    assert (record.job.status, record.job.attempts, record.errors) == ("pending", 0, ())


def test_leaving_does_not_wait_for_a_thread_that_is_stuck(app: App, database_url: str) -> None:
    """Its lease is left to run out, since the handler goes on."""
    began, release = threading.Event(), threading.Event()

    @app.job
    def stuck() -> None:
        began.set()
        release.wait(LIMIT)

    async def work() -> int:
        async with app.worker(stop_grace="500 ms"), asyncio.timeout(LIMIT):
            job = await stuck.aenqueue()
            await until(began.is_set)
        state = await asyncio.to_thread(status, database_url, job.id)
        release.set()
        assert state == "running"
        return job.id

    asyncio.run(work())


def test_a_sync_handler_that_ignores_its_time_out_loses_its_lease(database_url: str) -> None:
    """Nothing can kill it here: its lease is extended no more, so that another worker takes the job over."""
    app = make_app(database_url, lease="1 s", timeout_grace="200 ms")
    began, release = [], threading.Event()

    @app.job(timeout="300 ms")
    def stuck() -> str:
        began.append(None)
        if len(began) == 1:
            release.wait(LIMIT)
        return "by the second"

    async def work() -> int:
        async with app.worker(stop_grace="500 ms"), app.worker(stop_grace="500 ms"), asyncio.timeout(LIMIT):
            job = await stuck.aenqueue()
            await until(lambda: len(began) == 2, "the second attempt")
            await until(lambda: status(database_url, job.id) == "done")
            release.set()
        return job.id

    record = show(database_url, asyncio.run(work()))
    assert (record.result, record.job.crashes) == ("by the second", 1)


def test_a_busy_application_keeps_its_leases(database_url: str) -> None:
    """For 2.5 leases its event loop does not turn, and a rival looks every 20 ms."""
    app = make_app(database_url, lease="1 s")
    ran, over = [], threading.Event()

    @app.job
    async def blocks() -> None:
        ran.append(None)
        other.start()
        time.sleep(2.5)

    async def rival() -> None:
        async with app.with_database(database_url).worker(upkeep=False):
            await asyncio.to_thread(over.wait, LIMIT)

    async def work() -> int:
        async with app.worker(upkeep=False) as worker, asyncio.timeout(LIMIT):
            job = await blocks.aenqueue()
            await worker.drain()
            return job.id

    other = threading.Thread(target=lambda: asyncio.run(rival()))
    try:
        record = show(database_url, asyncio.run(work()))
    finally:
        over.set()
        other.join(LIMIT)
    assert (record.job.status, record.job.crashes, len(ran)) == ("done", 0, 1)


def test_two_workers_in_one_application_share_the_work(app: App, ran: list[int]) -> None:
    app.jobs["charge"].enqueue_many([(order,) for order in range(500)])

    async def work() -> None:
        async with app.worker() as one, app.worker() as two, asyncio.timeout(LIMIT):
            await one.drain()
            await two.drain()

    asyncio.run(work())
    assert sorted(ran) == list(range(500))


def test_an_error_in_the_block_stops_the_worker_and_goes_on(app: App) -> None:
    async def work() -> None:
        async with app.worker():
            raise LookupError("the application's own")

    with pytest.raises(LookupError, match="own"):
        asyncio.run(work())


def test_it_can_be_entered_again(app: App, ran: list[int]) -> None:
    async def work() -> None:
        worker = app.worker()
        for order in range(2):
            async with worker, asyncio.timeout(LIMIT):
                await app.jobs["charge"].aenqueue(order)
                await worker.drain()

    asyncio.run(work())
    assert ran == [0, 1]


def test_a_schema_that_is_missing_is_refused(empty_database_url: str) -> None:
    async def work() -> None:
        async with make_app(empty_database_url).worker():
            pass

    with pytest.raises(SchemaMismatch, match="semel migrate"):
        asyncio.run(work())


def test_it_leaves_no_connection_behind(app: App, database_url: str, ran: list[int]) -> None:
    async def work() -> None:
        async with app.worker() as worker, asyncio.timeout(LIMIT):
            await app.jobs["charge"].aenqueue(1)
            await worker.drain()
        await app.aclose()

    asyncio.run(work())
    sql = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    deadline = time.monotonic() + LIMIT
    while ask(database_url, sql) != [(0,)]:
        assert time.monotonic() < deadline
