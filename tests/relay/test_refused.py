"""A message that is refused: tried again, dead-lettered, or in the way of its key; a broker that is away is no refusal."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from tests.relay.brokers import Redis
from tests.relay.forwarded import QUICK, comes_true, drained, jobs, make_app, relaying
from tests.relay.tasks import make_celery
from tests.support.stored import ask

from semel.core.job import ClaimedJob
from semel.relay import Message, Target, ToCelery, ToSidekiq
from semel.relay.refusals import step_aside
from semel.relay.suspects import Suspects

KNOWN = {"note": ("NoteJob", ["number", "key"])}


def test_without_a_key_it_becomes_a_dead_letter(database_url: str, redis: Redis) -> None:
    app = make_app(database_url)
    app.enqueue_many([app.jobs["note"].new(1), app.jobs["unknown"].new(2), app.jobs["note"].new(3)])
    figures = asyncio.run(drained(app, ToSidekiq(redis.url, KNOWN)))
    assert [each.number for each in redis.read()] == [1, 3]
    assert [(kind, status, attempts) for _, kind, status, attempts, _ in jobs(database_url)] == [
        ("note", "done", 1),
        ("unknown", "failed", 1),
        ("note", "done", 1),
    ]
    assert "no class for the kind 'unknown'" in jobs(database_url)[1][4]
    assert (figures.sent, figures.refused, figures.failed) == (2, 1, 1)
    ask(database_url, "UPDATE semel.jobs SET status = 'pending', attempts = 0 WHERE kind = 'unknown'")
    asyncio.run(drained(app, ToSidekiq(redis.url, KNOWN | {"unknown": ("X", ["number", "key"])})))
    assert [each.number for each in redis.read()] == [2]


def enqueue_keys(app: Any) -> None:
    """Key a has a message in the middle that nothing takes; key b has none."""
    note, unknown = app.jobs["note"], app.jobs["unknown"]
    for kind, number, key in [
        (note, 1, "a"),
        (note, 2, "b"),
        (unknown, 3, "a"),
        (note, 4, "a"),
        (note, 5, "b"),
        (note, 6, "a"),
    ]:
        kind.using(ordering_key=key).enqueue(number, key)


def test_with_a_key_it_blocks_its_key_visibly(
    database_url: str, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(database_url)
    enqueue_keys(app)

    async def go() -> None:
        async with relaying(app, ToSidekiq(redis.url, KNOWN)) as running:
            figures = running.figures["out"]
            await comes_true(lambda: figures.refused >= 2 and figures.sent == 3, "it was tried again")
            assert figures.blocked == {"a": 3}
            assert figures.failed == 0

    asyncio.run(go())
    assert [each.number for each in redis.read()] == [1, 2, 5]
    assert "blocks its key 'a'" in caplog.text
    rows = {number: (status, attempts) for number, _, status, attempts, _ in jobs(database_url)}
    assert rows[3][0] == "pending"
    assert rows[3][1] >= 2
    assert rows[4] == rows[6] == ("pending", 0), "those behind it were not charged"

    ask(database_url, "UPDATE semel.jobs SET run_at = now() WHERE kind = 'unknown'")
    figures = asyncio.run(drained(app, ToSidekiq(redis.url, KNOWN | {"unknown": ("X", ["number", "key"])})))
    assert [each.number for each in redis.read()] == [3, 4, 6]
    assert figures.sent == 3


def test_a_person_who_cancels_it_lets_the_key_go_on(database_url: str, redis: Redis) -> None:
    app = make_app(database_url)
    enqueue_keys(app)

    async def go() -> None:
        async with relaying(app, ToSidekiq(redis.url, KNOWN)) as running:
            figures = running.figures["out"]
            await comes_true(lambda: figures.blocked and figures.sent == 3, "the key is blocked")
            ask(database_url, "UPDATE semel.jobs SET status = 'cancelled' WHERE kind = 'unknown'")
            await comes_true(lambda: figures.sent == 5, "the key goes on")
            assert figures.blocked == {}

    asyncio.run(go())
    assert [each.number for each in redis.read()] == [1, 2, 5, 4, 6]


def test_where_told_so_it_becomes_a_dead_letter_and_the_key_goes_on(database_url: str, redis: Redis) -> None:
    app = make_app(database_url)
    enqueue_keys(app)
    figures = asyncio.run(drained(app, ToSidekiq(redis.url, KNOWN), when_refused="dead-letter"))
    arrived = redis.read()
    assert [each.number for each in arrived if each.key == "a"] == [1, 4, 6]
    assert [each.number for each in arrived if each.key == "b"] == [2, 5]
    assert figures.failed == 1
    assert figures.blocked == {}


def test_a_function_of_the_users_that_raises_is_the_message_s_own_matter(
    database_url: str, redis: Redis
) -> None:
    app = make_app(database_url)
    for number in range(4):
        app.jobs["unknown"].enqueue(number)
    known = {"unknown": ("X", ["number", "key"])}

    def name(message: Message) -> str:
        return f"id-{10 // message.arguments['number']}"

    figures = asyncio.run(drained(app, ToSidekiq(redis.url, known), message_id=name, retry=QUICK))

    async def rest() -> int:
        async with relaying(app, ToSidekiq(redis.url, known), message_id=name, retry=QUICK) as running:
            await comes_true(lambda: jobs(database_url)[0][2] == "failed", "it gave up")
            return running.figures["out"].failed

    assert figures.failed + asyncio.run(rest()) == 1
    assert "ZeroDivisionError" in jobs(database_url)[0][4]
    assert [each.number for each in redis.read()] == [1, 2, 3]


@dataclass
class Fragile:
    """A broker that is there, and ends the connection when it is given one of these numbers."""

    poison: set[int]
    arrived: list[int] = field(default_factory=list)
    connections: int = 0

    async def open(self) -> Any:
        self.connections += 1
        return FragileSender(self)


class FragileSender:
    """Everything on its way is lost with the connection."""

    def __init__(self, broker: Fragile) -> None:
        self.broker = broker
        self.lost = asyncio.Event()

    async def send(self, message: Message) -> None:
        number = message.arguments["number"]
        if number in self.broker.poison:
            self.lost.set()
        await asyncio.sleep(0.01)
        if self.lost.is_set():
            await asyncio.sleep(60)
        self.broker.arrived.append(number)

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("key", [None, "k"])
def test_one_that_ends_every_connection_without_a_word_steps_aside(
    database_url: str, key: str | None
) -> None:
    """Whether it is to blame, nobody can tell: it is not charged, but the others must get through."""
    app = make_app(database_url)
    note = app.jobs["note"]
    app.enqueue_many(
        [
            note.using(max_attempts=1, ordering_key=key if number == 20 else None).new(number)
            for number in range(60)
        ]
    )
    broker = Fragile({20})

    async def go() -> None:
        async with relaying(app, broker, retry=QUICK) as running:
            figures = running.figures["out"]
            others = set(range(60)) - {20}
            await comes_true(lambda: set(broker.arrived) == others, "the others arrived")
            app.enqueue_many([note.new(number) for number in range(60, 80)])
            await comes_true(lambda: set(broker.arrived) == others | set(range(60, 80)), "later ones too")
            await comes_true(lambda: "times, with others" in (jobs(database_url)[20][4] or ""), "it is named")
            assert figures.refused == figures.failed == 0
            broker.poison.clear()
            await comes_true(lambda: jobs(database_url)[20][2] == "done", "it was not to blame")

    asyncio.run(go())
    assert {row[2:4] for row in jobs(database_url)} == {("done", 1)}
    assert sorted(broker.arrived) == list(range(80)), "nothing came twice"


def test_how_long_it_steps_aside() -> None:
    """Longer than the next connection takes, so that others come first; longer each time that others did get through."""
    suspects = Suspects()
    assert [suspects.note(7, confirmed) for confirmed in (0, 0, 5, 5, 6)] == [1, 1, 2, 2, 3]
    assert suspects.note(8, 6) == 1
    suspects.forget(7)
    assert suspects.note(7, 6) == 1
    job = ClaimedJob(
        id=7,
        claim=1,
        worker=1,
        kind="note",
        payload=b"{}",
        attempt=1,
        max_attempts=1,
        crashes=0,
        queue="out",
        priority=0,
        ordering_key=None,
        run_at=datetime.now(UTC),
    )
    for times, least, most in [(1, 3.5, 4.0), (3, 5.0, 7.0), (50, 33.0, 63.0)]:
        aside = step_aside(job, 3.0, times)
        assert aside.delay is not None
        assert least <= aside.delay.total_seconds() <= most
        assert (aside.status, aside.refund, aside.error) == ("pending", True, None)


def test_a_broker_that_is_away_costs_no_attempt(database_url: str, redis: Redis) -> None:
    app = make_app(database_url)
    app.enqueue_many(
        [app.jobs["note"].using(ordering_key="k" if n % 2 else None).new(n, "k") for n in range(300)]
    )
    redis.kill()

    async def go() -> None:
        async with relaying(app, ToSidekiq(redis.url, KNOWN)) as running:
            await asyncio.sleep(1)
            assert running.figures["out"].connections == 0
            assert {row[2:4] for row in jobs(database_url)} == {("pending", 0)}
            redis.start()
            async with asyncio.timeout(60):
                await running.drain()

    asyncio.run(go())
    assert {row[2:4] for row in jobs(database_url)} == {("done", 1)}
    assert len(redis.read()) == 300


@pytest.mark.parametrize("by", ["sidekiq", "celery"])
def test_a_broker_that_takes_nothing_for_now_costs_no_attempt(
    by: str, database_url: str, redis: Redis
) -> None:
    """A full Redis, or a replica after a failover, refuses every message alike."""
    import redis as client

    app = make_app(database_url)
    target: Target = ToSidekiq(redis.url, KNOWN)
    if by == "celery":
        target = ToCelery(make_celery(redis.url), tasks={"note": "tests.note"}, queue="full")
    app.enqueue_many([app.jobs["note"].using(max_attempts=1).new(number) for number in range(30)])

    async def go() -> None:
        async with relaying(app, target, retry=QUICK) as running:
            figures = running.figures["out"]
            await comes_true(lambda: figures.connections >= 4, "it was tried several times")
            assert figures.failed == figures.refused == 0
            assert {row[2] for row in jobs(database_url)} <= {"pending", "running"}
            connection.config_set("maxmemory", 0)
            async with asyncio.timeout(60):
                await running.drain()

    with client.Redis(port=redis.port) as connection:
        connection.config_set("maxmemory", 1)
        try:
            asyncio.run(go())
        finally:
            connection.config_set("maxmemory", 0)
    assert {row[2:4] for row in jobs(database_url)} == {("done", 1)}
    with client.Redis(port=redis.port) as connection:
        assert connection.llen("queue:default") + connection.llen("full") == 30
        connection.flushall()


def test_a_queue_s_key_that_is_no_list_is_the_matter_of_its_messages(database_url: str, redis: Redis) -> None:
    import redis as client

    app = make_app(database_url)
    app.enqueue_many([app.jobs["note"].new(1), app.jobs["unknown"].using(max_attempts=1).new(2)])
    target = ToSidekiq(
        redis.url,
        KNOWN | {"unknown": "X"},
        queue=lambda message: "default" if message.kind == "note" else "odd",
    )
    with client.Redis(port=redis.port) as connection:
        connection.set("queue:odd", "a string")
        figures = asyncio.run(drained(app, target, retry=QUICK))
        connection.delete("queue:odd")
    assert (figures.sent, figures.failed) == (1, 1)
    why = jobs(database_url)[1][4]
    assert "WRONGTYPE" in why
    assert "LPUSH" not in why, "nothing of the job's arguments"
    assert 1 in [each.number for each in redis.read()]


def test_the_oldest_and_the_summary(database_url: str, redis: Redis) -> None:
    app = make_app(database_url)
    app.jobs["note"].enqueue(1)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE semel.jobs SET run_at = now() - interval '90 s'")
    app.jobs["note"].using(priority=-5, run_after="1 h").enqueue(2)
    app.jobs["note"].using(priority=5).enqueue(3)

    async def go() -> None:
        async with relaying(app, ToSidekiq(redis.url, {})) as running:
            await running.look()
            report = running.figures["out"].report()
            assert 90 <= report["oldest"] < 120
            assert set(report) == {"sent", "refused", "failed", "lost", "connections", "oldest", "blocked"}

    asyncio.run(go())
    redis.read()
