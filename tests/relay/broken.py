"""A broker that does all that brokers do to messages, and relays that are wrong about it, each in one way."""

from __future__ import annotations

import asyncio
import dataclasses
import random
import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.relay.brokers import Arrived

from semel.errors import BrokerUnreachable, MessageRefused
from semel.relay import Message, Sender, Target, forwarding


@dataclass
class Hostile:
    """By number, what happens to a message when it comes first: ``lost``, ``unconfirmed``, ``refused``, or ``kept``, which is
    refused and there all the same."""

    faults: dict[int, str]
    arrived: list[Arrived] = field(default_factory=list)
    overlapping: list[str] = field(default_factory=list)
    """Keys of which two messages were on their way at once."""
    under_way: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    async def open(self) -> Sender:
        return _HostileSender(self)


@dataclass
class _HostileSender:
    broker: Hostile
    lost: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, message: Message) -> None:
        broker, key = self.broker, message.key
        if key is not None:
            broker.under_way[key] += 1
            if broker.under_way[key] > 1:
                broker.overlapping.append(key)
        try:
            await asyncio.sleep(random.random() / 500)
            self._take(message)
        finally:
            if key is not None:
                broker.under_way[key] -= 1

    def _take(self, message: Message) -> None:
        number = message.arguments["number"]
        if self.lost.is_set():
            raise BrokerUnreachable("It has ended.")
        fault = self.broker.faults.pop(number, None)
        if fault == "refused":
            raise MessageRefused("Not now.")
        if fault != "lost":
            self.broker.arrived.append(Arrived(message.id, message.key, number))
        if fault == "kept":
            raise MessageRefused("Not by all.")
        if fault is not None:
            self.lost.set()
            raise BrokerUnreachable("It ended.")

    async def close(self) -> None:
        pass


@dataclass
class Early:
    """Wrong: says that a message is confirmed before it is sent."""

    target: Target
    delay: float = 0.0
    sending: set[asyncio.Task[None]] = field(default_factory=set)

    async def open(self) -> Sender:
        return _EarlySender(self, await self.target.open())


@dataclass
class _EarlySender:
    early: Early
    sender: Sender

    @property
    def lost(self) -> asyncio.Event:
        return self.sender.lost

    async def send(self, message: Message) -> None:
        async def later() -> None:
            await asyncio.sleep(self.early.delay)
            await self.sender.send(message)

        self.early.sending.add(asyncio.create_task(later()))

    async def close(self) -> None:
        await self.sender.close()


@dataclass
class Deaf:
    """Wrong: takes the end of a connection for a confirmation."""

    target: Target

    async def open(self) -> Sender:
        sender = await self.target.open()
        right = sender.send

        async def send(message: Message) -> None:
            try:
                await right(message)
            except BrokerUnreachable:
                return

        sender.send = send  # type: ignore[method-assign]
        return sender


def with_new_ids(patch: pytest.MonkeyPatch) -> None:
    """Wrong: each time that a message is sent it has another id."""
    right = forwarding.make_message
    patch.setattr(
        forwarding,
        "make_message",
        lambda *given: dataclasses.replace(right(*given), id=str(uuid.uuid4())),
    )


def with_ids_by_attempt(patch: pytest.MonkeyPatch) -> None:
    """Wrong: a message that was refused has another id when it is tried again."""
    right = forwarding.make_message

    def make(job: Any, *given: Any) -> Message:
        message = right(job, *given)
        return dataclasses.replace(message, id=f"{message.id}-{message.attempt}")

    patch.setattr(forwarding, "make_message", make)


def without_waiting(patch: pytest.MonkeyPatch) -> None:
    """Wrong: a message does not wait for the one before it of its key."""
    right = forwarding.Forwarding._forward
    patch.setattr(forwarding.Forwarding, "_forward", lambda self, held, _: right(self, held, None))


def whatever_came_before(patch: pytest.MonkeyPatch) -> None:
    """Wrong: a message that waited is sent even if the one before it was not."""
    right = forwarding.Forwarding._leave_line

    def leave(self: Any, held: Any, mine: Any, _: bool) -> None:
        right(self, held, mine, True)

    patch.setattr(forwarding.Forwarding, "_leave_line", leave)


def with_followers_left(patch: pytest.MonkeyPatch) -> None:
    """Wrong: what is claimed, and follows a message that was not sent, stays where it is."""
    patch.setattr(forwarding.Forwarding, "_send_back_followers", lambda *_: None)
