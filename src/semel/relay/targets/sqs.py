"""Amazon SQS: batches of up to ten, each entry confirmed by the response."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from semel.errors import BrokerUnavailable, BrokerUnreachable, MessageRefused
from semel.relay.connecting import said
from semel.relay.message import Message
from semel.relay.target import Sender
from semel.relay.targets.threaded import Answers, ThreadedSender

_BATCH: Final = 10
"""Entries that SQS takes in one call."""
_MOST_BYTES: Final = 250_000
"""Of bodies and attributes in one call: under the 262,144 that every SQS takes."""

_GROUP: Final = re.compile(r"[!-~]{1,128}")
_UNSTORABLE: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What SQS takes in no attribute."""
_OF_THE_QUEUE: Final = re.compile(
    "Throttl|TooMany|LimitExceeded|Denied|Expired|Kms|KMS|QueueDoesNotExist|NonExistentQueue"
)
"""Codes that say nothing about a message, whatever their status."""


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
            answers_for = _meaning(error, alone=len(batch) == 1)
        except (BotoCoreError, OSError) as error:
            answers_for = BrokerUnavailable(f"SQS: {said(error)}")
        else:
            sent = {int(entry["Id"]) for entry in response.get("Successful", [])}
            why = {int(entry["Id"]): entry for entry in response.get("Failed", [])}
            for place in places:
                if place not in sent:
                    answers[place] = _refusal(why.get(place))
            return
        for place in places:
            answers[place] = answers_for

    def entry(self, message: Message) -> dict[str, Any]:
        """The entry of a batch, without its place in it."""
        attributes = {
            name: {"DataType": "String", "StringValue": _UNSTORABLE.sub("\ufffd", value)}
            for name, value in message.headers.items()
        }
        entry: dict[str, Any] = {"MessageBody": self.body(message), "MessageAttributes": attributes}
        if self.queue_url.endswith(".fifo"):
            entry |= {
                "MessageGroupId": group(message.key or message.id),
                "MessageDeduplicationId": message.id,
            }
        return entry

    def __str__(self) -> str:
        return f"SQS ({self.queue_url.rsplit('/', 1)[-1]})"


def group(key: str) -> str:
    """The message group of an ordering key: the key itself where SQS takes it as one, else its hash."""
    return key if _GROUP.fullmatch(key) else hashlib.sha256(key.encode()).hexdigest()


def _meaning(error: Any, *, alone: bool) -> Exception:
    """What a call that SQS did not carry out says about the messages in it: often nothing."""
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
    code = str(error.response.get("Error", {}).get("Code", ""))
    if status in (401, 403, 429) or status >= 500 or _OF_THE_QUEUE.search(code):
        return BrokerUnavailable(f"SQS: {said(error)}")
    return (MessageRefused if alone else BrokerUnreachable)(f"SQS: {said(error)}")


def _refusal(entry: dict[str, Any] | None) -> Exception:
    """What one entry's refusal says. Without an answer nobody knows whether SQS has it."""
    if entry is None:
        return BrokerUnreachable("SQS: the response says nothing of the message.")
    told = f"{entry.get('Code', '')} {entry.get('Message', '')}".strip()
    if not entry.get("SenderFault", True) or _OF_THE_QUEUE.search(str(entry.get("Code", ""))):
        return BrokerUnavailable(f"SQS: {told}")
    return MessageRefused(f"SQS refused the message: {told}")


def _size(entry: dict[str, Any]) -> int:
    attributes = entry["MessageAttributes"]
    return len(entry["MessageBody"].encode()) + sum(
        len(name) + len(value["StringValue"].encode()) + 6 for name, value in attributes.items()
    )
