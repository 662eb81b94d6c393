"""What attempts in one child share, and what they must not: context, ends in one turn of the event loop, the timer."""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

from tests.worker.helpers import LIMIT, drain, make_app, show, status, until

from semel.queue.worker.launching import Launcher


def test_no_job_sees_the_context_of_the_one_before_it(database_url: str) -> None:
    """Whichever of them starts as the other ends."""
    app = make_app(database_url)
    tenant = contextvars.ContextVar("tenant", default="nobody")
    seen = []

    @app.job
    async def visit(name: str) -> None:
        seen.append(tenant.get())
        tenant.set(name)
        await asyncio.sleep(0)

    @app.job
    def visit_now(name: str) -> None:
        seen.append(tenant.get())
        tenant.set(name)

    for number in range(6):
        (visit if number % 3 else visit_now).enqueue(f"tenant {number}")
    drain(app, concurrency=1)
    assert seen == ["nobody"] * 6


def test_a_job_that_is_cancelled_before_its_first_step_goes_back_and_runs(database_url: str) -> None:
    """Nothing of it ran, so that nothing of it can tell."""
    app = make_app(database_url)
    run_async = Launcher._run_async.__qualname__
    cancelled: list[asyncio.Task[Any]] = []

    @app.job(priority=10)
    async def cancels() -> None:
        if not cancelled:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            cancelled.extend(
                task for task in others if getattr(task.get_coro(), "__qualname__", "") == run_async
            )
            for task in cancelled:
                task.cancel()

    @app.job
    async def runs() -> str:
        return "ran"

    cancels.enqueue()
    job = runs.enqueue()
    drain(app, concurrency=2)
    assert len(cancelled) == 1
    assert cancelled[0].cancelled()
    record = show(database_url, job.id).job
    assert (record.status.value, record.attempts) == ("done", 1)


def test_each_time_out_comes_in_its_time(database_url: str) -> None:
    """The shortest starts last, and one without a time-out goes on."""
    app = make_app(database_url, max_attempts=1)
    released = asyncio.Event()
    order: list[str] = []

    async def wait(name: str) -> None:
        try:
            await released.wait()
        except asyncio.CancelledError:
            order.append(name)
            raise

    @app.job(timeout=None, priority=30)
    async def endless() -> None:
        await wait("endless")

    @app.job(timeout="60 s", priority=20)
    async def long() -> None:
        await wait("long")

    @app.job(timeout="1 s", priority=10)
    async def middle() -> None:
        await wait("middle")

    @app.job(timeout="0.3 s")
    async def short() -> None:
        await wait("short")

    jobs = [job.enqueue() for job in (endless, long, middle, short)]

    async def work() -> None:
        async with app.worker(concurrency=4) as worker, asyncio.timeout(LIMIT):
            await until(lambda: len(order) == 2, "two time-outs")
            released.set()
            await worker.drain()

    asyncio.run(work())
    assert order == ["short", "middle"]
    assert [status(database_url, job.id) for job in jobs] == ["done", "done", "failed", "failed"]
