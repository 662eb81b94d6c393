"""Kafka: no server can be run here, so the target is held to aiokafka's contract as it is documented.

A producer that is given ``acks="all"`` and ``enable_idempotence=True`` answers ``send_and_wait`` when all in-sync replicas
have the record, and raises a `KafkaError` of its own class otherwise. What is shown: that it is asked for this, what the
record holds, that a job is done only then, and what each kind of error makes of it. The real producer checks the options.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer, errors
from tests.relay.forwarded import QUICK, comes_true, drained, jobs, make_app, relaying
from tests.relay.test_messages import references

from semel.relay import ToKafka


class Producer:
    """Answers as ``AIOKafkaProducer`` is documented to."""

    def __init__(self, script: Script, **options: Any) -> None:
        self.script = script
        self.options = options

    async def start(self) -> None:
        self.script.started.append(self.options)
        if self.script.unreachable:
            self.script.unreachable -= 1
            raise errors.KafkaConnectionError("Unable to bootstrap")

    async def stop(self) -> None:
        self.script.stopped += 1

    async def send_and_wait(self, topic: str, **record: Any) -> object:
        number = json.loads(record["value"])["number"]
        await asyncio.sleep(0.05)  # others are on their way beside it
        if (wrong := self.script.errors.get(number, [])) != []:
            raise wrong.pop(0)
        if self.script.gate is not None:
            await self.script.gate.wait()
        self.script.records.append((topic, record))
        return object()


class Script:
    def __init__(self, **wrong: list[Exception]) -> None:
        self.errors = {int(name[1:]): given for name, given in wrong.items()}
        self.unreachable = 0
        self.started: list[dict[str, Any]] = []
        self.stopped = 0
        self.records: list[tuple[str, dict[str, Any]]] = []
        self.gate: asyncio.Event | None = None

    def target(self, **options: Any) -> ToKafka:
        return ToKafka(
            "localhost:1",
            "{queue}-events",
            make_producer=lambda **given: Producer(self, **given),
            options=options,
        )


def test_the_record_and_what_the_producer_is_asked_for(database_url: str) -> None:
    app, script = make_app(database_url), Script()
    app.jobs["note"].using(ordering_key="order-7").enqueue(1, "k")
    app.jobs["note"].enqueue(2)
    asyncio.run(drained(app, script.target(compression_type="gzip", acks=1)))
    (options,) = script.started
    assert options["acks"] == "all", "whatever the options say"
    assert options["enable_idempotence"] is True
    assert options["compression_type"] == "gzip"
    assert options["bootstrap_servers"] == "localhost:1"
    one, two = references(database_url)
    assert [(topic, record["key"]) for topic, record in script.records] == [
        ("out-events", b"order-7"),
        ("out-events", two.encode()),
    ]
    record = script.records[0][1]
    assert json.loads(record["value"]) == {"number": 1, "key": "k"}
    assert dict(record["headers"])["semel-message-id"] == one.encode()
    assert script.stopped == 1


def test_it_is_done_only_when_the_replicas_have_it(database_url: str) -> None:
    app, script = make_app(database_url), Script()
    app.jobs["note"].enqueue(1)

    async def go() -> None:
        script.gate = asyncio.Event()
        async with relaying(app, script.target()) as running:
            await comes_true(lambda: jobs(database_url)[0][2] == "running", "it is on its way")
            assert running.figures["out"].sent == 0
            script.gate.set()
            await comes_true(lambda: jobs(database_url)[0][2] == "done", "it is done")

    asyncio.run(go())


@pytest.mark.parametrize(
    "refusal",
    [
        errors.MessageSizeTooLargeError,
        errors.UnknownTopicOrPartitionError,
        errors.TopicAuthorizationFailedError,
    ],
)
def test_a_refusal_is_charged(database_url: str, refusal: type[Exception]) -> None:
    app, script = make_app(database_url), Script(_1=[refusal()] * 5)
    app.jobs["note"].using(max_attempts=1).enqueue(1)
    app.jobs["note"].enqueue(2)
    figures = asyncio.run(drained(app, script.target(), retry=QUICK))
    assert (figures.sent, figures.failed, figures.connections) == (1, 1, 1)
    assert "Kafka refuses" in jobs(database_url)[0][4]


@pytest.mark.parametrize(
    "ended",
    [
        errors.KafkaTimeoutError,
        errors.KafkaConnectionError,
        errors.NotEnoughReplicasError,
        errors.ProducerFenced,
    ],
)
def test_what_says_nothing_about_the_message_makes_it_connect_anew(
    database_url: str, ended: type[Exception]
) -> None:
    app, script = make_app(database_url), Script(_3=[ended()])
    script.unreachable = 2
    app.enqueue_many([app.jobs["note"].new(number) for number in range(6)])
    figures = asyncio.run(drained(app, script.target()))
    assert figures.connections == 2
    assert figures.failed == 0
    assert {row[2] for row in jobs(database_url)} == {"done"}
    assert {json.loads(record["value"])["number"] for _, record in script.records} == set(range(6))


@pytest.mark.parametrize(
    "ended", [errors.KafkaConnectionError, errors.KafkaTimeoutError, errors.NotEnoughReplicasError]
)
def test_one_that_is_alone_on_its_way_is_not_to_blame(database_url: str, ended: type[Exception]) -> None:
    app, script = make_app(database_url), Script(_1=[ended()] * 3)
    app.jobs["note"].using(max_attempts=1).enqueue(1)

    async def go() -> None:
        async with relaying(app, script.target(), retry=QUICK) as running:
            await comes_true(lambda: jobs(database_url)[0][2] == "done", "it arrived")
            assert running.figures["out"].refused == 0

    asyncio.run(go())
    assert jobs(database_url)[0][2:4] == ("done", 1)
    assert script.errors[1] == [], "each was met"


def test_the_real_producer_takes_these_options() -> None:
    async def go() -> None:
        made: list[Any] = []

        def make(**options: Any) -> Any:
            made.append(AIOKafkaProducer(**options))
            return made[-1]

        target = ToKafka("127.0.0.1:1", "t", timeout=1, make_producer=make)
        with pytest.raises(errors.KafkaConnectionError):
            await target.open()
        assert len(made) == 1

    asyncio.run(go())
