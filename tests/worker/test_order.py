"""Which job runs when: priorities, delays, queues, how many at once, and what a child holds ahead."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tests.worker.helpers import LIMIT, ask, drain, make_app, show, status, until

from semel import App


@pytest.fixture
def ran() -> list[int]:
    return []


@pytest.fixture
def app(database_url: str, ran: list[int]) -> App:
    app = make_app(database_url)

    @app.job
    async def charge(order: int) -> None:
        ran.append(order)

    return app


def test_larger_priorities_run_first_and_equal_ones_in_order(app: App, ran: list[int]) -> None:
    charge = app.jobs["charge"]
    for order, priority in enumerate([0, 5, -100, 5, 100, 0]):
        charge.using(priority=priority).enqueue(order)
    drain(app, concurrency=1)
    assert ran == [4, 1, 3, 0, 5, 2]


def test_a_delayed_job_waits_for_its_time(app: App, ran: list[int], database_url: str) -> None:
    charge = app.jobs["charge"]
    job = charge.using(run_after="1 h").enqueue(1)
    charge.using(run_at=datetime.now(UTC) + timedelta(hours=1)).enqueue(2)
    charge.using(run_at=datetime.now(UTC) - timedelta(hours=1)).enqueue(3)
    drain(app)
    assert ran == [3]
    ask(database_url, "UPDATE jobs SET run_at = now() WHERE id = %s", job.id)
    drain(app)
    assert ran == [3, 1]


def test_a_delayed_job_is_met_when_it_is_due(app: App, ran: list[int]) -> None:
    async def work() -> None:
        async with app.worker(), asyncio.timeout(LIMIT):
            job = await app.jobs["charge"].using(run_after="300 ms").aenqueue(1)
            assert job.created
            await until(lambda: ran)

    asyncio.run(work())


def test_a_worker_serves_only_its_queues(app: App, ran: list[int]) -> None:
    charge = app.jobs["charge"]
    for order, queue in enumerate(["default", "mail", "reports", "mail"]):
        charge.using(queue=queue).enqueue(order)
    drain(app, queues=["mail"])
    assert sorted(ran) == [1, 3]
    drain(app, queues=["reports", "default"])
    assert sorted(ran) == [0, 1, 2, 3]


def test_a_worker_without_a_filter_serves_every_queue(app: App, ran: list[int]) -> None:
    for order in range(30):
        app.jobs["charge"].using(queue=f"queue {order % 7}", priority=order % 3).enqueue(order)
    drain(app, concurrency=2)
    assert sorted(ran) == list(range(30))


@pytest.mark.parametrize("flavour", ["async", "sync"])
def test_never_more_at_once_than_the_concurrency(database_url: str, flavour: str) -> None:
    app = make_app(database_url)
    running: set[int] = set()
    most: list[int] = []

    def begin(order: int) -> None:
        running.add(order)
        most.append(len(running))

    async def charge(order: int) -> None:
        begin(order)
        await asyncio.sleep(0.005)
        running.remove(order)

    def charge_now(order: int) -> None:
        begin(order)
        event.wait(0.005)
        running.remove(order)

    import threading

    event = threading.Event()
    job = app.job(kind="charge")(charge if flavour == "async" else charge_now)
    job.enqueue_many([(order,) for order in range(200)])
    drain(app, concurrency=7)
    assert len(most) == 200
    assert max(most) == 7


def test_what_is_claimed_ahead_goes_back_when_its_turn_does_not_come(database_url: str) -> None:
    """Quick jobs teach a child to claim ahead; then one takes long. What waits behind it runs elsewhere, uncharged."""
    app = make_app(database_url, lease="2 s")
    go_on = asyncio.Event()
    ran: list[int] = []

    @app.job
    async def charge(order: int) -> None:
        if order == 300:
            await go_on.wait()
        ran.append(order)

    jobs = charge.enqueue_many([(order,) for order in range(400)])

    async def work() -> None:
        async with app.worker(concurrency=1) as first, asyncio.timeout(LIMIT):
            await until(lambda: len(ran) == 300, "the long one's turn")
            assert first._engine is not None
            assert first._engine.board.waiting, "nothing was claimed ahead: this test shows nothing"
            async with app.worker(concurrency=1):
                await until(lambda: len(ran) == 399, "another worker to run what waited")
                assert first._engine._claiming is not None
                assert first._engine._claiming._wanted() == 0, "it takes again what it gave back"
                assert status(database_url, jobs[300].id) == "running"
                go_on.set()
                await until(lambda: len(ran) == 400)

    asyncio.run(work())
    for job in jobs[301:]:
        assert show(database_url, job.id).job.attempts == 1
    assert sorted(ran) == list(range(400))
