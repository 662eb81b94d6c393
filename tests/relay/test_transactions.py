"""A message commits with the caller's data or is never sent; and nobody touches what is not theirs."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from tests.relay.brokers import Redis
from tests.relay.forwarded import drained, jobs, make_app, relaying
from tests.support.stored import ask, statuses

import semel
from semel.errors import ConfigurationError
from semel.relay import Relay, ToSidekiq


def target(redis: Redis) -> ToSidekiq:
    return ToSidekiq(redis.url, {"note": ("NoteJob", ["number", "key"])})


def test_what_is_rolled_back_is_never_sent(database_url: str, redis: Redis) -> None:
    app = make_app(database_url)
    with psycopg.connect(database_url) as connection:
        connection.execute("CREATE TABLE orders (id integer)")
        connection.commit()
        for number in range(20):
            connection.execute("INSERT INTO orders VALUES (%s)", [number])
            app.jobs["note"].using(tx=connection).enqueue(number)
            if number % 2:
                connection.rollback()
            else:
                connection.commit()
    figures = asyncio.run(drained(app, target(redis)))
    kept = [number for (number,) in ask(database_url, "SELECT id FROM orders ORDER BY id")]
    assert [each.number for each in redis.read()] == kept == list(range(0, 20, 2))
    assert figures.sent == 10


def test_what_is_not_committed_yet_is_not_sent(database_url: str, redis: Redis) -> None:
    app = make_app(database_url)

    async def go() -> None:
        async with relaying(app, target(redis)) as running:
            async with await psycopg.AsyncConnection.connect(database_url) as connection:
                await app.jobs["note"].using(tx=connection).aenqueue(1)
                await running.drain()
                assert running.figures["out"].sent == 0
            await running.drain()
            assert running.figures["out"].sent == 1
        await app.aclose()

    asyncio.run(go())
    assert [each.number for each in redis.read()] == [1]


def test_jobs_of_other_queues_are_left_alone(database_url: str, redis: Redis) -> None:
    app = make_app(database_url)
    for queue in ("default", "out2", "ou"):
        app.jobs["note"].using(queue=queue, ordering_key="k").enqueue(1)
        app.jobs["note"].using(queue=queue).enqueue(1)
    app.jobs["note"].enqueue(2)
    before = ask(database_url, "SELECT * FROM semel.jobs WHERE queue <> 'out' ORDER BY id")
    asyncio.run(drained(app, target(redis)))
    assert ask(database_url, "SELECT * FROM semel.jobs WHERE queue <> 'out' ORDER BY id") == before
    assert [each.number for each in redis.read()] == [2]


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "told by the relay"])
def test_workers_leave_relayed_queues_alone(database_url: str, redis: Redis, declared: bool) -> None:
    app = semel.App(database_url, poll="20 ms")
    ran: list[int] = []

    @app.job
    def local(number: int) -> None:
        ran.append(number)

    if declared:

        @app.job(queue="out", relayed=True)
        def note(number: int) -> None: ...
    else:
        Relay(app, {"out": target(redis)})
    local.enqueue(1)
    local.using(queue="out").enqueue(2)

    async def work() -> None:
        async with app.worker() as worker:
            await worker.drain()
        async with app.worker(queues=["out", "default"]) as worker:
            await worker.drain()

    asyncio.run(work())
    assert ran == [1]
    assert statuses(database_url, "out") == {"pending": 1}


def test_a_relayed_kind_on_another_queue_fails_and_says_so(database_url: str) -> None:
    app = make_app(database_url)
    app.jobs["unknown"].using(queue="default", max_attempts=1).enqueue(1)

    async def work() -> None:
        async with app.worker(poll="20 ms") as worker:
            await worker.drain()

    asyncio.run(work())
    ((_, _, status, _, error),) = jobs(database_url, "default")
    assert status == "failed"
    assert "is for a relay" in error


def test_a_relayed_function_never_runs() -> None:
    app = make_app("postgresql://nowhere/at_all")
    with pytest.raises(ConfigurationError, match="never runs"):
        app.jobs["note"](1)
    with pytest.raises(ConfigurationError, match="never runs here"):

        @app.job(relayed=True, transaction=True)
        def charge(connection: object) -> None: ...
