"""What a relay needs of a broker. A target says where to; a sender is one connection to it."""

from __future__ import annotations

import asyncio
from typing import Protocol

from semel.relay.message import Message


class Sender(Protocol):
    """An open connection that takes many messages at once."""

    @property
    def lost(self) -> asyncio.Event:
        """Set when the connection is known to have ended, whether or not anything was sent."""
        ...

    async def send(self, message: Message) -> None:
        """Return when the broker has confirmed that it keeps the message, not before.

        Raises `MessageRefused` where it does not take this one: only that is charged to the message. `BrokerUnreachable` says
        that nobody knows whether the broker has it, and that a message may have ended the connection; `BrokerUnavailable`,
        that no message has: the broker takes none for now.
        """
        ...

    async def close(self) -> None:
        """Let go of the connection; what is under way is not waited for."""
        ...


class Target(Protocol):
    """Where a queue's messages go."""

    async def open(self) -> Sender:
        """Connect. Raises `BrokerUnreachable`, or whatever the broker's client raises."""
        ...
