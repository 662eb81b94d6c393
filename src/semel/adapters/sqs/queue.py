"""One queue, and the calls that are made to it."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from semel.adapters.sqs.client import POLL_SECONDS, SqsClient, make_client
from semel.adapters.sqs.message import Message
from semel.adapters.sqs.settings import QueueSettings
from semel.errors import BrokerUnreachable, SemelError

BATCH: Final = 10
"""The most that one call takes."""
_MOST_ATTRIBUTES: Final = 10
_MOST_BYTES: Final = 262_144
"""Of body and attributes together: what every SQS takes. A larger message is copied as it is."""
_UNSTORABLE: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
REFUSED: Final = "semel-refused"
"""The attribute of a copy in the dead-letter queue that says why it is there."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One entry of a batch that SQS did not carry out."""

    code: str
    text: str
    final: bool
    """It is no use to ask again: the receipt is not the message's any more, it is visible again, or its 12 hours are over."""

    def __str__(self) -> str:
        return f"{self.code} {self.text}".strip()


class Queue:
    """A queue by its URL or its name."""

    def __init__(self, queue: str, client: SqsClient | None = None) -> None:
        self._given = queue
        self._client = client
        self._polling = client
        self._lock = threading.RLock()
        self._urls: dict[str, str] = {}
        self._settings: QueueSettings | None = None

    @property
    def given(self) -> str:
        """The URL or the name that it was made with."""
        return self._given

    @property
    def client(self) -> SqsClient:
        """As given, else made when it is first needed."""
        with self._lock:
            if self._client is None:
                self._client = make_client(self._given)
            return self._client

    @property
    def _poller(self) -> SqsClient:
        """For what may take long: nothing else waits behind it, and it behind nothing else."""
        with self._lock:
            if self._polling is None:
                self._polling = make_client(self._given, read=POLL_SECONDS)
            return self._polling

    @property
    def url(self) -> str:
        """The queue's URL; asked for where a name was given."""
        return self._given if "://" in self._given else self._url(self._given)

    @property
    def settings(self) -> QueueSettings:
        """The queue's attributes, asked once."""
        with self._lock:
            if self._settings is None:
                self._settings = QueueSettings.from_attributes(self._read_attributes())
            return self._settings

    def _read_attributes(self) -> dict[str, str]:
        try:
            told = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=["All"])
            return dict(told["Attributes"])
        except SemelError:
            raise
        except Exception as error:  # whatever boto3 raises
            raise BrokerUnreachable(
                f"The attributes of the queue {self._given} cannot be read: {error}.",
                remedy="Check its name, the region, the credentials, and sqs:GetQueueAttributes and sqs:GetQueueUrl.",
            ) from error

    def receive(self, *, most: int, wait: int, visibility: int) -> list[Message]:
        """Wait up to ``wait`` seconds for messages, which are hidden from others for ``visibility`` seconds."""
        told = self._poller.receive_message(
            QueueUrl=self.url,
            MaxNumberOfMessages=min(most, BATCH),
            WaitTimeSeconds=wait,
            VisibilityTimeout=visibility,
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        return [Message.from_boto(raw, self.url) for raw in told.get("Messages") or ()]

    def delete(self, messages: Sequence[Message]) -> dict[int, Refusal]:
        """Delete at most ten. What was refused, by its place among them."""
        entries = [
            {"Id": str(place), "ReceiptHandle": each.receipt_handle} for place, each in enumerate(messages)
        ]
        return _refused(self.client.delete_message_batch(QueueUrl=self.url, Entries=entries))

    def hide(self, wanted: Sequence[tuple[Message, int]]) -> dict[int, Refusal]:
        """Set the visibility time-outs of at most ten, in seconds from now. What was refused, by its place among them."""
        entries = [
            {"Id": str(place), "ReceiptHandle": each.receipt_handle, "VisibilityTimeout": seconds}
            for place, (each, seconds) in enumerate(wanted)
        ]
        return _refused(self.client.change_message_visibility_batch(QueueUrl=self.url, Entries=entries))

    def send_to_dead_letters(self, message: Message, why: str) -> bool:
        """Put a copy into the dead-letter queue, with the reason as an attribute. False where none is set."""
        arn = self.settings.dead_letter_queue
        if arn is None:
            return False
        attributes: dict[str, Any] = {name: dict(each) for name, each in message.message_attributes.items()}
        said = {"DataType": "String", "StringValue": _storable(why)[:1000]}
        if (
            len(attributes) < _MOST_ATTRIBUTES
            and _size(message.body, attributes | {REFUSED: said}) <= _MOST_BYTES
        ):
            attributes[REFUSED] = said
        send(
            self.client,
            self._url(arn),
            message.body,
            attributes,
            group=message.group,
            deduplication=message.message_id,
        )
        return True

    def dead_letters(self) -> Queue | None:
        """The dead-letter queue, where one is set."""
        arn = self.settings.dead_letter_queue
        return None if arn is None else Queue(self._url(arn), self._client)

    def _url(self, name: str) -> str:
        """The URL of a queue by its name or ARN."""
        with self._lock:
            if name not in self._urls:
                parts = name.split(":")
                owner = {"QueueOwnerAWSAccountId": parts[4]} if len(parts) == 6 else {}
                self._urls[name] = self.client.get_queue_url(QueueName=parts[-1], **owner)["QueueUrl"]
            return self._urls[name]


def send(
    client: SqsClient,
    url: str,
    body: str,
    attributes: Mapping[str, Any],
    *,
    group: str | None,
    deduplication: str,
) -> str:
    """Send one message; its id. To a FIFO queue in its group, under an id that SQS has not seen."""
    more: dict[str, Any] = {"MessageAttributes": dict(attributes)} if attributes else {}
    if url.endswith(".fifo"):
        more |= {"MessageGroupId": group or "semel", "MessageDeduplicationId": deduplication}
    return str(client.send_message(QueueUrl=url, MessageBody=body, **more)["MessageId"])


def _size(body: str, attributes: Mapping[str, Mapping[str, Any]]) -> int:
    """As SQS counts: the body, and of each attribute its name, type and value."""
    size = len(body.encode())
    for name, each in attributes.items():
        value = each.get("BinaryValue") or str(each.get("StringValue", "")).encode()
        size += len(name.encode()) + len(str(each.get("DataType", "")).encode()) + len(value)
    return size


def _refused(told: Mapping[str, Any]) -> dict[int, Refusal]:
    failed: Iterable[Mapping[str, Any]] = told.get("Failed") or ()
    return {
        int(each["Id"]): Refusal(str(each.get("Code", "")), str(each.get("Message", "")), _is_final(each))
        for each in failed
    }


def _is_final(entry: Mapping[str, Any]) -> bool:
    return bool(entry.get("SenderFault", True)) and "Throttl" not in str(entry.get("Code", ""))


def _storable(text: str) -> str:
    """Without what SQS takes in no attribute."""
    return _UNSTORABLE.sub("\ufffd", text)
