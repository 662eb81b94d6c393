"""Consumers in the test's own process, on a real server: a client that notes its calls, and jobs that count."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.adapters.sqs_servers import SqsServer
from tests.support.waiting import until

from semel.adapters.sqs import Consumer


class Noting:
    """A client that passes everything on, and notes it. ``before[name]`` is called first: it may raise."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.before: dict[str, Callable[[dict[str, Any]], None]] = {}

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._client, name)

        def call(**request: Any) -> Any:
            self.before.get(name, lambda _: None)(request)
            self.calls.append((name, request))
            return real(**request)

        return call

    def named(self, name: str) -> list[dict[str, Any]]:
        """The requests of one kind, so far."""
        return [request for called, request in list(self.calls) if called == name]

    def hidden_for(self) -> list[int]:
        """Every visibility time-out that was set."""
        requests = self.named("change_message_visibility_batch")
        return [entry["VisibilityTimeout"] for request in requests for entry in request["Entries"]]


@dataclass
class Queue:
    """A queue of the test's own."""

    server: SqsServer
    url: str
    client: Any

    @classmethod
    def on(
        cls, server: SqsServer, *, fifo: bool = False, dead_letters_after: int = 0, **attributes: Any
    ) -> Queue:
        client = server.client()
        if dead_letters_after:
            letters = server.create_queue(fifo=fifo)
            told = client.get_queue_attributes(QueueUrl=letters, AttributeNames=["QueueArn"])["Attributes"]
            redrive = {"deadLetterTargetArn": told["QueueArn"], "maxReceiveCount": dead_letters_after}
            attributes["RedrivePolicy"] = json.dumps(redrive)
        made = cls(server, server.create_queue(fifo=fifo, **attributes), client)
        made.letters = cls(server, letters, client) if dead_letters_after else None
        return made

    letters: Queue | None = None

    def send(self, body: Any, *, group: str | None = None, **attributes: str) -> str:
        more: dict[str, Any] = {}
        if group is not None:
            self._sent = getattr(self, "_sent", 0) + 1
            more = {"MessageGroupId": group, "MessageDeduplicationId": f"{id(self)}-{self._sent}"}
        text = body if isinstance(body, str) else json.dumps(body)
        given = {name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()}
        told = self.client.send_message(QueueUrl=self.url, MessageBody=text, MessageAttributes=given, **more)
        return str(told["MessageId"])

    def receive(self, most: int = 10, *, visibility: int = 30, wait: int = 0) -> list[dict[str, Any]]:
        told = self.client.receive_message(
            QueueUrl=self.url,
            MaxNumberOfMessages=most,
            VisibilityTimeout=visibility,
            WaitTimeSeconds=wait,
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        return list(told.get("Messages") or ())

    def counts(self) -> tuple[int, int]:
        """Visible and hidden messages."""
        told = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=["All"])["Attributes"]
        return int(told["ApproximateNumberOfMessages"]), int(told["ApproximateNumberOfMessagesNotVisible"])

    def wait_empty(self) -> None:
        until(lambda: self.counts() == (0, 0), "the queue is empty")


@dataclass
class Effects:
    """What happened, in order; and gates that hold a job until the test lets it go on."""

    happened: list[str] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)
    _gates: dict[str, threading.Event] = field(default_factory=dict)
    _faults: Counter[str] = field(default_factory=Counter)

    def hold(self, name: str) -> threading.Event:
        """Every job of that name waits until the event is set."""
        return self._gates.setdefault(name, threading.Event())

    def fail(self, name: str, times: int) -> None:
        """The next calls for that name raise, before they act."""
        self._faults[name] = times

    def begin(self, name: str) -> None:
        self.begun.append(name)
        if name in self._gates:
            assert self._gates[name].wait(60)
        if self._faults[name] > 0:
            self._faults[name] -= 1
            raise RuntimeError(f"{name} fails")

    def act(self, name: str) -> None:
        self.happened.append(name)

    @property
    def counts(self) -> Counter[str]:
        return Counter(self.happened)


@contextmanager
def consuming(consumer: Consumer) -> Iterator[threading.Thread]:
    """Run a consumer beside the block, and stop it at its end."""
    thread = threading.Thread(target=consumer.run, daemon=True)
    thread.start()
    try:
        yield thread
    finally:
        consumer.stop()
        thread.join(60)
        assert not thread.is_alive(), "the consumer did not stop"


@dataclass
class EventSource:
    """What Lambda's poller does, by its documentation: a batch is one call, and what its answer does not name is deleted.

    Lambda itself cannot be had here. https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
    """

    queue: Queue
    arn: str = "arn:aws:sqs:us-east-1:000000000000:"

    def event(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        """The event for what was received."""
        arn = self.arn + self.queue.url.rpartition("/")[2]
        return {"Records": [self._record(each, arn) for each in messages]}

    @staticmethod
    def _record(message: dict[str, Any], arn: str) -> dict[str, Any]:
        attributes = {
            name: {"stringValue": each.get("StringValue"), "dataType": each["DataType"]}
            for name, each in (message.get("MessageAttributes") or {}).items()
        }
        return {
            "messageId": message["MessageId"],
            "receiptHandle": message["ReceiptHandle"],
            "body": message["Body"],
            "attributes": message.get("Attributes") or {},
            "messageAttributes": attributes,
            "md5OfBody": message.get("MD5OfBody", ""),
            "eventSource": "aws:sqs",
            "eventSourceARN": arn,
            "awsRegion": "us-east-1",
        }

    def poll(self, handler: Callable[..., Any], *, visibility: int = 30, context: Any = None) -> list[str]:
        """One batch: the ids that failed. An exception of the function fails, and keeps, all of it."""
        messages = self.queue.receive(visibility=visibility, wait=1)
        if not messages:
            return []
        try:
            answer = handler(self.event(messages), context)
            failed = [each["itemIdentifier"] for each in answer["batchItemFailures"]]
        except Exception:
            failed = [each["MessageId"] for each in messages]
        for message in messages:
            if message["MessageId"] not in failed:
                self.queue.client.delete_message(
                    QueueUrl=self.queue.url, ReceiptHandle=message["ReceiptHandle"]
                )
        return failed
