"""Amazon SQS: batches of up to ten, each entry confirmed by the response."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from semel.errors import BrokerUnreachable, MessageRefused
from semel.relay.connecting import said
from semel.relay.message import Message
from semel.relay.target import Sender
from semel.relay.targets.threaded import Answers, ThreadedSender

_BATCH: Final = 10
"""Entries that SQS takes in one call."""
_MOST_BYTES: Final = 250_000
"""Of bodies and attributes in one call: under the 262,144 that every SQS takes."""


def _plain(message: Message) -> str:
    return message.payload.decode()


@dataclass(frozen=True, slots=True)
class ToSQS:
    """Sends to the queue at ``queue_url``. ``client`` makes the boto3 client; by default ``boto3.client("sqs")``.

    To a FIFO queue the ordering key goes as the group (without one, the message's id, so that nothing waits for it), and the
    message's id as the de-duplication id. ``body`` makes the body; by default it is the arguments as JSON.
    """

    queue_url: str
    client: Callable[[], Any] | None = field(default=None, repr=False)
    body: Callable[[Message], str] = _plain
    threads: int = 4
    timeout: float = 10.0
    """Seconds to connect, and for the answer."""

    async def open(self) -> Sender:
        return await ThreadedSender(
            self._connect, self._publish, lambda client: client.close(), most=_BATCH, threads=self.threads
        ).open()

    def _connect(self) -> Any:
        if self.client is not None:
            client = self.client()
        else:
            import boto3
            from botocore.config import Config

            config = Config(
                connect_timeout=self.timeout, read_timeout=self.timeout, retries={"total_max_attempts": 1}
            )
            client = boto3.session.Session().client("sqs", config=config)
        client.get_queue_attributes(QueueUrl=self.queue_url, AttributeNames=["QueueArn"])
        return client

    def _publish(self, client: Any, messages: Sequence[Message]) -> Answers:
        answers: list[Exception | None] = [None] * len(messages)
        batch: list[dict[str, Any]] = []
        size = 0
        for place, message in enumerate(messages):
            try:
                entry = self.entry(message) | {"Id": str(place)}
            except Exception as error:
                answers[place] = error
                continue
            if batch and size + _size(entry) > _MOST_BYTES:
                self._send(client, batch, answers)
                batch, size = [], 0
            batch.append(entry)
            size += _size(entry)
        if batch:
            self._send(client, batch, answers)
        return answers

    def _send(self, client: Any, batch: Sequence[dict[str, Any]], answers: list[Exception | None]) -> None:
        from botocore.exceptions import BotoCoreError, ClientError

        places = [int(entry["Id"]) for entry in batch]
        try:
            response = client.send_message_batch(QueueUrl=self.queue_url, Entries=list(batch))
        except ClientError as error:
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
            kind = MessageRefused if 400 <= status < 500 and len(batch) == 1 else BrokerUnreachable
            answers_for: Exception = kind(f"SQS: {said(error)}")
        except (BotoCoreError, OSError) as error:
            answers_for = BrokerUnreachable(f"SQS: {said(error)}")
        else:
            sent = {int(entry["Id"]) for entry in response.get("Successful", [])}
            why = {int(entry["Id"]): entry for entry in response.get("Failed", [])}
            for place in places:
                if place not in sent:
                    entry = why.get(place, {})
                    answers[place] = MessageRefused(
                        f"SQS refused the message: {entry.get('Code', 'no answer')} {entry.get('Message', '')}".rstrip()
                    )
            return
        for place in places:
            answers[place] = answers_for

    def entry(self, message: Message) -> dict[str, Any]:
        """The entry of a batch, without its place in it."""
        attributes = {
            name: {"DataType": "String", "StringValue": value} for name, value in message.headers.items()
        }
        entry: dict[str, Any] = {"MessageBody": self.body(message), "MessageAttributes": attributes}
        if self.queue_url.endswith(".fifo"):
            entry |= {"MessageGroupId": message.key or message.id, "MessageDeduplicationId": message.id}
        return entry

    def __str__(self) -> str:
        return f"SQS ({self.queue_url.rsplit('/', 1)[-1]})"


def _size(entry: dict[str, Any]) -> int:
    attributes = entry["MessageAttributes"]
    return len(entry["MessageBody"].encode()) + sum(
        len(name) + len(value["StringValue"].encode()) + 6 for name, value in attributes.items()
    )
