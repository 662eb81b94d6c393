"""What arrives at each broker, as those who read there see it: a Celery worker, Sidekiq, plain consumers."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pika
import pytest
from botocore.exceptions import ClientError
from tests.adapters.brokers import Rabbit
from tests.adapters.sqs_servers import SqsServer
from tests.relay.brokers import NATS, Broker, Redis
from tests.relay.forwarded import QUICK, drained, jobs, make_app
from tests.relay.tasks import NOTED, make_celery
from tests.support.stored import ask
from tests.support.waiting import until

from semel.errors import MessageUnfit
from semel.relay import Message, ToCelery, ToNATS, ToRabbitMQ, ToSidekiq, ToSQS
from semel.relay.targets.sidekiq import jid
from semel.relay.targets.sqs import group

ROOT = Path(__file__).parents[2]


def references(url: str) -> list[str]:
    """The reference of each job, the oldest first: what a message's id is."""
    ((installation,),) = ask(url, "SELECT id FROM semel.installation")
    return [str(uuid.uuid5(installation, str(row[0]))) for row in jobs(url)]


@contextmanager
def process(*command: str, **environment: str) -> Iterator[None]:
    started = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        started.kill()
        started.wait()


@pytest.mark.parametrize("over", ["redis", "rabbitmq"])
def test_celery_runs_the_task(
    over: str, database_url: str, redis: Redis, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = redis.url if over == "redis" else request.getfixturevalue("rabbit").url
    queue = f"relay-{uuid.uuid4().hex[:8]}"
    app = make_app(database_url)
    app.jobs["note"].using(ordering_key="k").enqueue(1, "k")
    app.jobs["note"].enqueue(2)
    app.jobs["unknown"].using(max_attempts=1).enqueue(3)
    target = ToCelery(make_celery(url), tasks={"note": "tests.note"}, queue=queue)
    figures = asyncio.run(drained(app, target))
    assert (figures.sent, figures.failed) == (2, 1)
    noted = tmp_path / "noted"
    celery = (sys.executable, "-m", "celery", "-A", "tests.relay.tasks", "worker")
    options = ("--pool", "solo", "--queues", queue, "--without-gossip", "--without-mingle")
    with process(*celery, *options, SEMEL_TEST_BROKER=url, **{NOTED: str(noted)}, C_FORCE_ROOT="1"):
        until(lambda: noted.exists() and len(noted.read_text().splitlines()) == 2, "both ran", 90)
    ran = sorted(map(json.loads, noted.read_text().splitlines()), key=lambda each: each["number"])
    assert [(each["id"], each["number"], each["key"]) for each in ran] == [
        (references(database_url)[0], 1, "k"),
        (references(database_url)[1], 2, None),
    ]


def test_celery_s_broker_refuses_one_task_of_several(database_url: str, rabbit: Rabbit) -> None:
    """Its queue is there with other arguments: RabbitMQ closes the channel, for that task only."""
    app = make_app(database_url)
    name = f"relay-{uuid.uuid4().hex[:8]}"
    for number in range(10):
        app.jobs["note"].using(max_attempts=1).enqueue(number)
        if number == 4:
            app.jobs["unknown"].using(max_attempts=1).enqueue(99)
    celery = make_celery(rabbit.url)
    celery.conf.update(
        task_default_queue=name,
        task_routes={"tests.unknown": {"queue": f"{name}-other"}},
    )
    with _rabbit(rabbit) as channel:
        channel.queue_declare(f"{name}-other", durable=False, exclusive=True)
        tasks = {"note": "tests.note", "unknown": "tests.unknown"}
        figures = asyncio.run(drained(app, ToCelery(celery, tasks=tasks), retry=QUICK))
        assert channel.queue_declare(name, passive=True).method.message_count == 10
        channel.queue_delete(name)
    assert (figures.sent, figures.failed, figures.connections) == (10, 1, 1)
    assert {row[1:4] for row in jobs(database_url)} == {("note", "done", 1), ("unknown", "failed", 1)}


def test_celery_arguments_by_place(redis: Redis, database_url: str) -> None:
    app = make_app(database_url)
    app.jobs["note"].enqueue(5, "x")
    target = ToCelery(
        make_celery(redis.url),
        queue="by-place",
        arguments=lambda message: (list(message.arguments.values()), {}),
    )
    asyncio.run(drained(app, target))
    import base64

    import redis as client

    with client.Redis(port=redis.port) as connection:
        (sent,) = connection.lrange("by-place", 0, -1)
    told = json.loads(sent)
    assert told["headers"]["task"] == "note"
    assert told["headers"]["lang"] == "py"
    assert told["headers"]["semel-kind"] == "note"
    assert told["properties"]["correlation_id"] == told["headers"]["id"] == references(database_url)[0]
    args, kwargs, embedded = json.loads(base64.b64decode(told["body"]))
    assert sorted(map(str, args)) == ["5", "x"]
    assert kwargs == {}
    assert set(embedded) == {"callbacks", "errbacks", "chain", "chord"}


RUBY = """
class NoteJob
  include Sidekiq::Worker
  def perform(*args)
    File.open(ENV.fetch("SEMEL_TEST_NOTED"), "a") { |file| file.puts(JSON.generate([jid, args])) }
  end
end
"""


def test_sidekiq_performs_the_job(database_url: str, redis: Redis, tmp_path: Path) -> None:
    if shutil.which("sidekiq") is None:
        if os.environ.get("CI"):
            pytest.fail("Sidekiq is not installed")
        pytest.skip("Sidekiq is not installed (Debian: apt-get install ruby-sidekiq)")
    app = make_app(database_url)
    app.jobs["note"].enqueue(1, "k")
    app.jobs["note"].enqueue(2)
    asyncio.run(drained(app, ToSidekiq(redis.url, {"note": ("NoteJob", ["number", "key"])})))
    app.jobs["note"].enqueue(3)
    asyncio.run(drained(app, ToSidekiq(redis.url, {"note": "NoteJob"})))
    (tmp_path / "note_job.rb").write_text(RUBY, "utf-8")
    noted = tmp_path / "noted"
    environment = {"REDIS_URL": redis.url, NOTED: str(noted), "LANG": "C.UTF-8"}
    with process("sidekiq", "-r", str(tmp_path / "note_job.rb"), "-c", "1", "-t", "1", **environment):
        until(lambda: noted.exists() and len(noted.read_text().splitlines()) == 3, "all were performed", 90)
    performed = [json.loads(line) for line in noted.read_text().splitlines()]
    assert [args for _, args in performed] == [[1, "k"], [2], [{"number": 3}]]
    assert len({name for name, _ in performed}) == 3
    assert all(len(name) == 24 and int(name, 16) for name, _ in performed)


def test_the_jid_is_the_message_s_and_arguments_have_a_place(database_url: str) -> None:
    message = Message(
        id="a",
        job_id=1,
        kind="note",
        queue="out",
        payload=b'{"b": 2}',
        key=None,
        attempt=1,
        due=None,  # type: ignore[arg-type]
    )
    target = ToSidekiq("redis://x", {"note": ("N", ["a", "b", "c"]), "other": ("N", ["a"])}, retry=5)
    assert target.job(message, "q")["args"] == [None, 2]
    assert target.job(message, "q")["jid"] == jid(message)
    assert target.job(message, "q")["retry"] == 5
    with pytest.raises(MessageUnfit, match="no place for: b"):
        ToSidekiq("redis://x", {"note": ("N", ["a"])}).job(message, "q")


def test_rabbitmq_with_what_it_refuses(database_url: str, rabbit: Rabbit) -> None:
    app = make_app(database_url)
    name = f"relay-{uuid.uuid4().hex[:8]}"
    app.jobs["note"].using(ordering_key="k").enqueue(1, "k")
    app.jobs["unknown"].using(max_attempts=1).enqueue(2)
    with _rabbit(rabbit) as channel:
        channel.queue_declare(f"{name}-note", durable=True)
        target = ToRabbitMQ(rabbit.url, f"{name}-{{kind}}", headers={"source": "shop"})
        figures = asyncio.run(drained(app, target, retry=QUICK))
        _, properties, body = channel.basic_get(f"{name}-note", auto_ack=True)
        assert json.loads(body) == {"number": 1, "key": "k"}
        assert properties.message_id == references(database_url)[0]
        assert (properties.type, properties.delivery_mode, properties.content_type) == (
            "note",
            2,
            "application/json",
        )
        assert properties.headers["semel-ordering-key"] == "k"
        assert properties.headers["source"] == "shop"
        assert channel.basic_get(f"{name}-note")[0] is None
        channel.queue_delete(f"{name}-note")
    assert (figures.sent, figures.failed, figures.connections) == (1, 1, 1)
    assert "NO_ROUTE" in jobs(database_url)[1][4], "no queue takes it, and that is no confirmation"


@pytest.mark.parametrize("by", ["rabbitmq", "celery"])
def test_a_negative_confirmation_is_a_refusal(by: str, database_url: str, rabbit: Rabbit) -> None:
    """A queue that is full refuses what would make it longer."""
    from kombu import Queue

    app = make_app(database_url)
    name = f"relay-{uuid.uuid4().hex[:8]}"
    for number in range(2):
        app.jobs["note"].using(max_attempts=1).enqueue(number)
    full = {"x-max-length": 1, "x-overflow": "reject-publish"}
    celery = make_celery(rabbit.url)
    celery.conf.task_queues = [Queue(name, routing_key=name, queue_arguments=full)]
    target = ToCelery(celery, tasks={"note": "tests.note"}, queue=name, threads=1)
    with _rabbit(rabbit) as channel:
        channel.queue_declare(name, durable=True, arguments=full)
        figures = asyncio.run(
            drained(app, ToRabbitMQ(rabbit.url, name) if by == "rabbitmq" else target, retry=QUICK)
        )
        assert channel.queue_declare(name, passive=True).method.message_count == 1
        channel.queue_delete(name)
    assert (figures.sent, figures.failed, figures.connections) == (1, 1, 1)
    assert [row[2] for row in jobs(database_url)] == ["done", "failed"]
    assert "negative confirmation" in jobs(database_url)[1][4]


def test_rabbitmq_closes_the_channel_for_an_exchange_that_is_not_there(
    database_url: str, rabbit: Rabbit
) -> None:
    app = make_app(database_url)
    name = f"relay-{uuid.uuid4().hex[:8]}"
    for number in range(20):
        app.jobs["note"].enqueue(number)
    app.jobs["unknown"].using(max_attempts=1).enqueue(99)
    for number in range(20, 40):
        app.jobs["note"].enqueue(number)
    with _rabbit(rabbit) as channel:
        channel.queue_declare(name, durable=True)
        exchange: Callable[[Message], str] = lambda message: "" if message.kind == "note" else "nowhere"  # noqa: E731
        figures = asyncio.run(drained(app, ToRabbitMQ(rabbit.url, name, exchange), retry=QUICK))
        seen = set()
        while (got := channel.basic_get(name, auto_ack=True))[0] is not None:
            seen.add(json.loads(got[2])["number"])
        channel.queue_delete(name)
    assert seen == set(range(40))
    assert figures.failed == 1
    assert {row[1:4] for row in jobs(database_url)} == {("note", "done", 1), ("unknown", "failed", 1)}


@contextmanager
def _rabbit(rabbit: Rabbit) -> Iterator[Any]:
    connection = pika.BlockingConnection(pika.URLParameters(f"{rabbit.url[:-1]}%2F"))
    try:
        yield connection.channel()
    finally:
        connection.close()


def test_nats_drops_a_repeat_by_its_id(
    database_url: str, own_broker: Callable[[type[Broker]], Broker]
) -> None:
    broker = own_broker(NATS)
    assert isinstance(broker, NATS)

    async def widen(stream: Any) -> None:
        from nats.js.api import StreamConfig

        await stream.update_stream(StreamConfig(name="OUT", subjects=["out.>"], duplicate_window=60))

    asyncio.run(broker._with_stream(widen))
    app = make_app(database_url)
    app.jobs["note"].using(ordering_key="k").enqueue(1, "k")
    app.jobs["unknown"].using(max_attempts=1).enqueue(2)
    target = ToNATS(
        broker.url, lambda message: "out.x" if message.kind == "note" else "elsewhere", stream="OUT"
    )
    figures = asyncio.run(drained(app, target, retry=QUICK))
    assert (figures.sent, figures.failed) == (1, 1)
    assert "No stream takes the subject 'elsewhere'" in jobs(database_url)[1][4]
    ask(
        database_url,
        "INSERT INTO semel.jobs (id, kind, payload, queue) SELECT id, kind, payload, queue FROM semel.jobs_done",
    )
    assert asyncio.run(drained(app, target)).sent == 1, "as after a kill between confirmation and settlement"
    (arrived,) = broker.read()
    assert (arrived.id, arrived.key, arrived.number) == (references(database_url)[0], "k", 1)


@pytest.mark.parametrize("fifo", [True, False])
def test_sqs(database_url: str, sqs: SqsServer, fifo: bool) -> None:
    app = make_app(database_url)
    queue_url = sqs.create_queue(fifo=fifo)
    client = sqs.client()
    keys = ["a", "b", None]
    app.enqueue_many(
        [app.jobs["note"].using(ordering_key=keys[n % 3]).new(n, keys[n % 3]) for n in range(30)]
    )
    app.jobs["unknown"].using(max_attempts=1).enqueue(99)
    target = ToSQS(queue_url, sqs.client, body=_body)
    figures = asyncio.run(drained(app, target, retry=QUICK))
    assert (figures.sent, figures.failed) == (30, 1)
    got: list[dict[str, Any]] = []
    while len(got) < 30:
        answer = client.receive_message(
            QueueUrl=queue_url,
            MaxNumberOfMessages=10,
            WaitTimeSeconds=2,
            MessageAttributeNames=["All"],
            AttributeNames=["All"],
        )
        assert answer.get("Messages"), f"{len(got)} came"
        for each in answer["Messages"]:
            got.append(each)
            client.delete_message(QueueUrl=queue_url, ReceiptHandle=each["ReceiptHandle"])
    ids = {each["MessageAttributes"]["semel-message-id"]["StringValue"] for each in got}
    assert ids == set(references(database_url)[:30])
    if fifo:
        for key in ("a", "b"):
            numbers = [
                json.loads(each["Body"])["number"]
                for each in got
                if each["Attributes"]["MessageGroupId"] == key
            ]
            assert len(numbers) == 10
            assert numbers == sorted(numbers)
        assert all(
            each["Attributes"]["MessageDeduplicationId"]
            == each["MessageAttributes"]["semel-message-id"]["StringValue"]
            for each in got
        )


class _Troubled:
    """A client that SQS first throttles, and whose entries then fail inside SQS now and then."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def send_message_batch(self, **call: Any) -> Any:
        self.calls += 1
        if self.calls <= 3:
            told = {"Error": {"Code": "RequestThrottled"}, "ResponseMetadata": {"HTTPStatusCode": 400}}
            raise ClientError(told, "SendMessageBatch")
        if self.calls > 6:
            return self.client.send_message_batch(**call)
        first, *others = call["Entries"]
        answer = self.client.send_message_batch(**call | {"Entries": others}) if others else {}
        failed = {"Id": first["Id"], "Code": "InternalError", "SenderFault": False}
        return {**answer, "Failed": [*answer.get("Failed", []), failed]}


def test_sqs_that_is_in_trouble_charges_no_message(database_url: str, sqs: SqsServer) -> None:
    app = make_app(database_url)
    queue_url = sqs.create_queue()
    app.enqueue_many([app.jobs["note"].using(max_attempts=1).new(n) for n in range(10)])
    troubled = _Troubled(sqs.client())
    target = ToSQS(queue_url, lambda: troubled, threads=1)
    figures = asyncio.run(drained(app, target, retry=QUICK))
    assert (figures.refused, figures.failed) == (0, 0)
    assert troubled.calls > 6
    assert {row[2:4] for row in jobs(database_url)} == {("done", 1)}


def test_sqs_takes_any_ordering_key_as_a_group(database_url: str, sqs: SqsServer) -> None:
    app = make_app(database_url)
    keys = ["plain-1", "M\u00fcller & S\u00f6hne", "k" * 200, "a\x01b"]
    for key in keys:
        app.jobs["note"].using(ordering_key=key).enqueue(1, key)
    queue_url = sqs.create_queue(fifo=True)
    figures = asyncio.run(drained(app, ToSQS(queue_url, sqs.client), retry=QUICK))
    assert (figures.sent, figures.refused) == (4, 0)
    groups = [group(key) for key in keys]
    assert groups[0] == "plain-1"
    assert all(re.fullmatch("[!-~]{1,128}", each) for each in groups), "what AWS documents"
    assert len(set(groups)) == 4


def _body(message: Message) -> str:
    if message.kind == "unknown":
        raise ValueError("it has no body")
    return message.payload.decode()
