"""A queue's attributes, as far as they matter to who consumes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """What ``GetQueueAttributes`` says of a queue."""

    name: str
    visibility: timedelta = timedelta(seconds=30)
    retention: timedelta = timedelta(days=4)
    delay: timedelta = timedelta(0)
    fifo: bool = False
    deduplicates_by_content: bool = False
    max_receives: int | None = None
    """Receives after which SQS moves a message to the dead-letter queue; None where there is none."""
    dead_letter_queue: str | None = None
    """Its ARN."""

    @classmethod
    def from_attributes(cls, attributes: Mapping[str, str]) -> QueueSettings:
        """From the ``Attributes`` of the answer."""
        redrive: dict[str, Any] = json.loads(attributes.get("RedrivePolicy") or "{}")
        most = redrive.get("maxReceiveCount")
        return cls(
            name=attributes.get("QueueArn", "").rpartition(":")[2],
            visibility=_seconds(attributes, "VisibilityTimeout", 30),
            retention=_seconds(attributes, "MessageRetentionPeriod", 345_600),
            delay=_seconds(attributes, "DelaySeconds", 0),
            fifo=attributes.get("FifoQueue") == "true",
            deduplicates_by_content=attributes.get("ContentBasedDeduplication") == "true",
            max_receives=None if most is None else int(most),
            dead_letter_queue=redrive.get("deadLetterTargetArn"),
        )


def _seconds(attributes: Mapping[str, str], name: str, default: int) -> timedelta:
    return timedelta(seconds=int(attributes.get(name, default)))
