"""A message that is alone on its way when its connection ends is not to blame: it is not charged, and arrives later."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.adapters.brokers import Rabbit
from tests.adapters.sqs_servers import SqsServer
from tests.relay.application import make_target
from tests.relay.brokers import NATS, Broker, RabbitMQ, Redis, make_broker
from tests.relay.cutting import Cutting
from tests.relay.forwarded import QUICK, comes_true, jobs, make_app, relaying
from tests.relay.tasks import make_celery
from tests.relay.test_messages import _rabbit

from semel.relay import Target, ToCelery, ToNATS, ToRabbitMQ, ToSidekiq, ToSQS

CUTS = 5
"""Of a message with one attempt."""
ESTABLISHED = "01"
"""In the kernel's tables of connections."""


class Way(NamedTuple):
    """To a broker, which can be cut."""

    port: int
    target: Callable[[int], Target]
    """Makes one that goes by another port."""
    marker: bytes = b"semel-message-id"
    """What every message carries."""


@pytest.fixture(scope="module")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = make_broker(NATS, tmp_path_factory.mktemp("nats"))
    yield broker
    broker.close()


@pytest.fixture
def queue() -> str:
    return f"cut-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def sidekiq(redis: Redis, queue: str) -> Way:
    known = {"note": ("NoteJob", ["number", "key"])}
    return Way(
        redis.port, lambda port: ToSidekiq(f"redis://127.0.0.1:{port}/0", known, queue=queue), b"NoteJob"
    )


@pytest.fixture
def celery_over_redis(redis: Redis, queue: str) -> Way:
    return Way(redis.port, lambda port: celery(f"redis://127.0.0.1:{port}/0", queue))


@pytest.fixture
def celery_over_rabbitmq(rabbit: Rabbit, queue: str) -> Way:
    return Way(rabbit.port, lambda port: celery(by(rabbit, port), queue))


@pytest.fixture
def rabbitmq(rabbit: Rabbit, queue: str) -> Way:
    with _rabbit(rabbit) as channel:
        channel.queue_declare(queue, durable=True)
    return Way(rabbit.port, lambda port: ToRabbitMQ(by(rabbit, port), queue))


@pytest.fixture
def jetstream(nats: Broker) -> Way:
    return Way(nats.port, lambda port: ToNATS(f"nats://127.0.0.1:{port}", "out.{kind}"))


@pytest.fixture
def amazon(sqs: SqsServer) -> Way:
    url = sqs.create_queue()
    return Way(sqs.port, lambda port: ToSQS(url, dataclasses.replace(sqs, port=port).client, threads=1))


def celery(url: str, queue: str) -> ToCelery:
    return ToCelery(make_celery(url), tasks={"note": "tests.note"}, queue=queue, threads=1)


def by(rabbit: Rabbit, port: int) -> str:
    return rabbit.url.replace(f":{rabbit.port}", f":{port}")


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize(
    "way", ["rabbitmq", "celery_over_rabbitmq", "celery_over_redis", "jetstream", "sidekiq", "amazon"]
)
def test_a_connection_that_is_cut_under_one_message(
    way: str, key: str | None, database_url: str, request: pytest.FixtureRequest
) -> None:
    port, target, marker = request.getfixturevalue(way)
    app = make_app(database_url)
    app.jobs["note"].using(max_attempts=1, ordering_key=key).enqueue(1)

    async def go() -> None:
        async with (
            Cutting(port, marker, CUTS).open() as cutting,
            relaying(app, target(cutting.port), retry=QUICK) as running,
        ):
            figures = running.figures["out"]
            await comes_true(lambda: jobs(database_url)[0][2] == "done", "it arrived")
            assert cutting.left == 0
            assert figures.refused == figures.failed == 0
            assert figures.blocked == {}

    asyncio.run(go())
    assert [row[2:4] for row in jobs(database_url)] == [("done", 1)]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("kind", "kills"), [(NATS, 3), (Redis, 3), (RabbitMQ, 2)])
def test_a_broker_that_is_killed_under_one_message(
    kind: type[Broker],
    kills: int,
    own_broker: Callable[[type[Broker]], Broker],
    database_url: str,
    tmp_path: Path,
) -> None:
    """It is frozen first and dies once the message has left: a client that has sent nothing connects again unnoticed."""
    broker = own_broker(kind)
    app = make_app(database_url)

    async def go() -> None:
        async with relaying(app, make_target(broker.target), retry=QUICK) as running:
            figures = running.figures["out"]
            for kill in range(kills):
                await comes_true(lambda kill=kill: figures.connections > kill, "connected")
                assert broker.process is not None
                os.killpg(broker.process.pid, signal.SIGSTOP)
                app.jobs["note"].using(max_attempts=1).enqueue(kill)
                await comes_true(lambda: unread(broker.port), "it is on its way")
                broker.restart()  # on this thread: a child ends with the thread that started it
                await comes_true(lambda: jobs(database_url)[-1][2] == "done", "it arrived")
            assert figures.refused == figures.failed == 0

    asyncio.run(go())
    assert [row[2:4] for row in jobs(database_url)] == [("done", 1)] * kills
    assert {each.number for each in broker.read()} == set(range(kills))


def unread(port: int) -> int:
    """Bytes that wait in the connections to ``port`` of this machine for the server to read them."""
    lines = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path("/proc/net", table).read_text().splitlines()
    ]
    queues = [line[4] for line in lines if line[1].endswith(f":{port:04X}") and line[3] == ESTABLISHED]
    return sum(int(queue.partition(":")[2], 16) for queue in queues)


def test_nats_whose_jetstream_is_away_is_no_refusal(
    own_broker: Callable[[type[Broker]], Broker], database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers as where no stream takes the subject."""
    broker = own_broker(NATS)
    app = make_app(database_url)
    app.jobs["note"].using(max_attempts=1).enqueue(1)
    without = [part for part in broker.command() if part != "-js"]
    with monkeypatch.context() as patched:
        patched.setattr(broker, "command", lambda: without)
        broker.restart()

    async def go() -> None:
        async with relaying(app, make_target(broker.target), retry=QUICK) as running:
            figures = running.figures["out"]
            await comes_true(lambda: figures.connections >= 3, "it was tried several times")
            broker.restart()
            await comes_true(lambda: figures.sent == 1, "it arrived")
            assert figures.refused == 0

    asyncio.run(go())
    assert [row[2:4] for row in jobs(database_url)] == [("done", 1)]


def test_a_stream_that_is_full_is_no_refusal(nats: Broker, database_url: str) -> None:
    assert isinstance(nats, NATS)
    app = make_app(database_url)
    subject = f"full.{uuid.uuid4().hex[:8]}"

    async def make(stream: Any, most: int = 1) -> None:
        from nats.js.api import DiscardPolicy, StreamConfig

        config = StreamConfig(name="FULL", subjects=[subject], max_msgs=most, discard=DiscardPolicy.NEW)
        await (stream.add_stream if most == 1 else stream.update_stream)(config)

    async def go() -> None:
        await nats._with_stream(make)
        for number in range(3):
            app.jobs["note"].using(max_attempts=1).enqueue(number)
        async with relaying(app, ToNATS(nats.url, subject), retry=QUICK) as running:
            figures = running.figures["out"]
            await comes_true(lambda: figures.sent == 1 and figures.connections >= 3, "it is full")
            assert figures.refused == 0
            await nats._with_stream(lambda stream: make(stream, 10))
            await comes_true(lambda: figures.sent == 3, "they arrived")

    asyncio.run(go())
    assert [row[2:4] for row in jobs(database_url)] == [("done", 1)] * 3
