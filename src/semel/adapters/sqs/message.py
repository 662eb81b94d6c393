"""A message as it came from SQS, by boto3 or by Lambda; and how to send the same one again."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from semel.errors import PayloadUnreadable
from semel.guard.declaration import to_message

ADAPTER: Final = "sqs"
"""The adapter's name in the messages that records keep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One delivery of a message."""

    message_id: str
    receipt_handle: str
    """Of this delivery: a further one has another."""
    body: str
    queue: str
    """The queue's URL."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """What SQS says of it: ``SentTimestamp``, ``ApproximateReceiveCount``, ``MessageGroupId`` …"""
    message_attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The sender's own, by name: ``{"DataType": "String", "StringValue": …}``."""

    @classmethod
    def from_boto(cls, raw: Mapping[str, Any], queue: str) -> Message:
        """One of the ``Messages`` of boto3's ``receive_message``."""
        return cls(
            message_id=raw["MessageId"],
            receipt_handle=raw["ReceiptHandle"],
            body=raw["Body"],
            queue=queue,
            attributes=raw.get("Attributes") or {},
            message_attributes=raw.get("MessageAttributes") or {},
        )

    @classmethod
    def from_lambda(cls, record: Mapping[str, Any]) -> Message:
        """One of the ``Records`` of the event that Lambda calls a function with."""
        given = record.get("messageAttributes") or {}
        return cls(
            message_id=record["messageId"],
            receipt_handle=record.get("receiptHandle", ""),
            body=record["body"],
            queue=url_of(record.get("eventSourceARN", "")),
            attributes=record.get("attributes") or {},
            message_attributes={name: _from_lambda(each) for name, each in given.items()},
        )

    @property
    def receives(self) -> int:
        """How often it was received, this time included; 1 where SQS did not say."""
        return int(self.attributes.get("ApproximateReceiveCount", 1))

    @property
    def group(self) -> str | None:
        """The message group of a FIFO queue. (A standard queue may name one for fairness: that orders nothing.)"""
        return self.attributes.get("MessageGroupId") if self.queue.endswith(".fifo") else None

    @property
    def sent_at(self) -> datetime | None:
        """When it was sent, by SQS's clock."""
        sent = self.attributes.get("SentTimestamp")
        return None if sent is None else datetime.fromtimestamp(int(sent) / 1000, UTC)

    def attribute(self, name: str) -> str | None:
        """The text of one of the sender's attributes."""
        value = self.message_attributes.get(name, {}).get("StringValue")
        return None if value is None else str(value)

    def to_kept(self) -> str:
        """What a record keeps, so that a person's redo can send it again."""
        attributes = {name: _to_kept(each) for name, each in self.message_attributes.items()}
        return to_message(
            ADAPTER,
            id=self.message_id,
            queue=self.queue,
            body=self.body,
            attributes=attributes,
            group=self.group,
        )


def url_of(arn: str) -> str:
    """The URL of a queue whose ARN is known: ``arn:aws:sqs:REGION:ACCOUNT:NAME``."""
    parts = arn.split(":")
    if len(parts) != 6 or parts[2] != "sqs":
        raise PayloadUnreadable(
            f"{arn!r} is no queue's ARN.", remedy="Give the event of an SQS event source mapping as it came."
        )
    _, partition, _, region, account, name = parts
    return f"https://sqs.{region}.amazonaws.com{'.cn' if partition == 'aws-cn' else ''}/{account}/{name}"


def _from_lambda(value: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"DataType": value.get("dataType", "String")}
    if value.get("stringValue") is not None:
        found["StringValue"] = value["stringValue"]
    if value.get("binaryValue") is not None:
        found["BinaryValue"] = base64.b64decode(value["binaryValue"])
    return found


def _to_kept(value: Mapping[str, Any]) -> dict[str, str]:
    kept = {"type": str(value.get("DataType", "String"))}
    if "BinaryValue" in value:
        kept["binary"] = base64.b64encode(value["BinaryValue"]).decode()
    else:
        kept["text"] = str(value.get("StringValue", ""))
    return kept


def from_kept(value: Mapping[str, str]) -> dict[str, Any]:
    """An attribute as boto3 takes it, from what a record keeps."""
    if "binary" in value:
        return {"DataType": value["type"], "BinaryValue": base64.b64decode(value["binary"])}
    return {"DataType": value["type"], "StringValue": value["text"]}
