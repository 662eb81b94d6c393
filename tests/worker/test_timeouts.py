"""9: time-outs of async and sync handlers, obeyed or not, in worker processes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from tests.worker.application import RUNS, app
from tests.worker.helpers import ask, make_app, perform, show, status, wait_until
from tests.worker.processes import running

from semel import App
from semel.store.jobs import Fence, claim, time_out


@pytest.fixture(autouse=True)
def runs(database_url: str) -> Callable[[int], int]:
    """How many attempts of a job have begun."""
    ask(database_url, RUNS)
    return lambda job_id: ask(database_url, "SELECT count(*) FROM public.runs WHERE job_id = %s", job_id)[0][
        0
    ]


@pytest.fixture
def jobs(database_url: str) -> App:
    """The application of the worker processes, over this test's database."""
    return app.with_database(database_url)


def wait_for(url: str, job_id: int, wanted: str) -> None:
    wait_until(lambda: status(url, job_id) == wanted, f"job {job_id} to be {wanted}")


@pytest.mark.parametrize("kind", ["obeys", "spins"])
def test_9_a_handler_that_obeys_costs_an_attempt_and_nothing_else(
    database_url: str, jobs: App, kind: str
) -> None:
    """An async one at its await, a sync one in a busy loop."""
    with running(database_url) as worker:
        neighbour = jobs.jobs["waits"].enqueue(5)
        job = jobs.jobs[kind].enqueue()
        wait_until(lambda: show(database_url, job.id).errors, "the time-out")
        record = show(database_url, job.id)
        assert (record.job.status, record.job.attempts, record.job.crashes) == ("pending", 1, 0)
        assert record.errors[0]["type"] == "semel.errors.TimedOut"
        assert "time-out of 1 s" in record.errors[0]["message"]
        wait_for(database_url, neighbour.id, "done")
        assert show(database_url, neighbour.id).job.attempts == 1
        assert not [line for line in worker.log if "killed" in line["message"]]


def test_9_time_outs_are_charged_up_to_max_attempts(database_url: str, jobs: App) -> None:
    with running(database_url):
        job = jobs.jobs["obeys"].enqueue()
        wait_for(database_url, job.id, "failed")
    record = show(database_url, job.id)
    assert record.job.attempts == 2
    assert [error["type"] for error in record.errors] == ["semel.errors.TimedOut"] * 2


@pytest.mark.parametrize("kind", ["swallows", "stuck"])
def test_9_a_handler_that_ignores_its_time_out_costs_its_child_and_no_neighbour(
    database_url: str, jobs: App, runs: Callable[[int], int], kind: str
) -> None:
    """An async one that swallows the cancellation, a sync one in a C call: killed after the grace, and charged."""
    with running(database_url) as worker:
        (first,) = worker.children()
        neighbours = [jobs.jobs["waits"].enqueue(3).id for _ in range(3)]
        wait_until(lambda: all(map(runs, neighbours)), "the neighbours to run")
        began = time.monotonic()
        job = jobs.jobs[kind].using(max_attempts=1).enqueue()
        wait_until(lambda: show(database_url, job.id).errors, "the time-out")
        assert time.monotonic() - began > 1.4, "killed before the grace was over"
        record = show(database_url, job.id)
        assert (record.job.status, record.job.attempts, record.job.crashes) == ("failed", 1, 0)
        assert "TimedOut" in record.errors[0]["type"]
        for neighbour in neighbours:
            wait_for(database_url, neighbour, "done")
            record = show(database_url, neighbour)
            assert (record.job.attempts, record.job.crashes, record.errors) == (1, 0, ())
            assert runs(neighbour) == 2
        assert first not in worker.children()
        line = worker.wait_for(lambda line: line.get("job_id") == job.id and "timed out" in line["message"])
        assert line["outcome"] == "failed"


def test_9_each_further_attempt_that_costs_a_child_waits_longer(database_url: str, jobs: App) -> None:
    """So that a handler that is stuck each time leaves its neighbours time to end."""
    ids = [job.id for job in jobs.jobs["stuck"].enqueue_many([()] * 4)]
    for attempt, job_id in enumerate(ids, 1):
        ask(
            database_url,
            "UPDATE jobs SET attempts = %s, max_attempts = 50 WHERE id = %s",
            attempt - 1,
            job_id,
        )
    ask(database_url, "UPDATE jobs SET attempts = 40 WHERE id = %s", ids[-1])
    lease = timedelta(minutes=1)
    claimed = perform(database_url, claim(worker=1, limit=5, lease=lease, max_crashes=3, queues=None)).taken
    for job in claimed:
        fence = Fence(job.id, job.claim, job.worker)
        assert perform(database_url, time_out(fence, delay=timedelta(seconds=2), summary="late")) == "pending"
    delays = [
        round((show(database_url, each).job.run_at - now(database_url)).total_seconds()) for each in ids
    ]
    assert delays == [2, 4, 8, 3600]


def now(url: str) -> datetime:
    return ask(url, "SELECT max(CAST(errors -> -1 ->> 'at' AS timestamptz)) FROM jobs")[0][0]


def test_9_a_sync_handler_may_clean_up_at_its_time_out(database_url: str) -> None:

    app = make_app(database_url)
    cleaned: list[str] = []
    never = threading.Event()

    @app.job(timeout="300 ms", max_attempts=1)
    def tidy() -> None:
        try:
            while not never.wait(0.01):
                pass
        finally:
            cleaned.append("up")

    async def work() -> int:
        async with app.worker() as worker, asyncio.timeout(30):
            job = await tidy.aenqueue()
            await worker.drain()
            return job.id

    assert status(database_url, asyncio.run(work())) == "failed"
    assert cleaned == ["up"]


def test_9_no_time_out_where_none_is_wanted(database_url: str) -> None:

    app = make_app(database_url, timeout="200 ms")

    @app.job(timeout=None)
    async def long() -> str:
        await asyncio.sleep(0.6)
        return "all of it"

    @app.job
    async def short() -> None:
        await asyncio.sleep(30)

    async def work() -> tuple[int, int]:
        async with app.worker() as worker, asyncio.timeout(30):
            first, second = await long.aenqueue(), await short.aenqueue()
            await worker.drain()
            return first.id, second.id

    first, second = asyncio.run(work())
    assert show(database_url, first).result == "all of it"
    assert show(database_url, second).errors[0]["type"] == "semel.errors.TimedOut"
