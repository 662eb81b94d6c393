"""What a relay hands to a broker: one job, with the identity that it keeps however often it is sent."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from semel.core.job import ClaimedJob
from semel.errors import MessageUnfit


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One job of a relayed queue."""

    id: str
    """Stable: the same whenever this job is sent, and of no other job anywhere."""
    job_id: int
    kind: str
    queue: str
    payload: bytes
    """The job's arguments by name, as a JSON object."""
    key: str | None
    """Its ordering key."""
    attempt: int
    """From 1; raised when the broker refused it, not when a relay died."""
    due: datetime
    """When it was to be sent, at the earliest."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments by name."""
        decoded: dict[str, Any] = msgspec.json.decode(self.payload)
        return decoded

    @property
    def headers(self) -> dict[str, str]:
        """What goes beside the body where a broker has headers or attributes."""
        named = {"semel-message-id": self.id, "semel-kind": self.kind, "semel-queue": self.queue}
        return named if self.key is None else named | {"semel-ordering-key": self.key}


Name: TypeAlias = str | Callable[[Message], str]
"""A name of the broker's: as it is, with ``{kind}`` and ``{queue}`` in it, or a function of the message."""

MessageId: TypeAlias = Callable[[Message], str]


def make_message(job: ClaimedJob, installation: uuid.UUID, message_id: MessageId | None = None) -> Message:
    """The message of a claimed job. Its id is the job's reference, unless ``message_id`` makes one of the message."""
    payload = job.payload if isinstance(job.payload, bytes) else job.payload.encode()
    message = Message(
        id=str(uuid.uuid5(installation, str(job.id))),
        job_id=job.id,
        kind=job.kind,
        queue=job.queue,
        payload=payload,
        key=job.ordering_key,
        attempt=job.attempt,
        due=job.run_at,
    )
    if message_id is None:
        return message
    made = message_id(message)
    if not isinstance(made, str) or not made:
        raise MessageUnfit(
            f"message_id made {made!r} of job {job.id}: not a string, or an empty one.",
            remedy="Make it from the arguments, the same each time.",
        )
    return Message(**{name: getattr(message, name) for name in Message.__slots__} | {"id": made})


def name_for(name: Name, message: Message) -> str:
    """What ``name`` is for this message."""
    if callable(name):
        return name(message)
    return name.replace("{kind}", message.kind).replace("{queue}", message.queue)
