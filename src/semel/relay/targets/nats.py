"""NATS JetStream: each message acknowledged by the stream; its id in ``Nats-Msg-Id``, by which the stream de-duplicates."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from semel.errors import BrokerUnavailable, BrokerUnreachable, MessageRefused
from semel.relay.connecting import said
from semel.relay.message import Message, Name, name_for
from semel.relay.target import Sender

_STREAMS: Final = "$JS.API.STREAM.NAMES"


@dataclass(frozen=True, slots=True)
class ToNATS:
    """Publishes to a JetStream stream that takes ``subject``.

    The stream drops a message whose id it has seen within its ``duplicate_window`` (2 minutes unless set). ``options`` go to
    ``nats.connect``: credentials, TLS.
    """

    servers: str | list[str]
    subject: Name
    stream: str | None = None
    """Where given, a message is refused that would come into another stream."""
    body: Callable[[Message], bytes] | None = None
    timeout: float = 10.0
    """Seconds to connect, and for an acknowledgement."""
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    async def open(self) -> Sender:
        import nats

        lost = asyncio.Event()

        async def ended() -> None:
            lost.set()

        async def said_wrong(_: Exception) -> None:
            """What goes wrong comes out of `send`, or as the end of the connection."""

        connection = await nats.connect(
            self.servers,
            allow_reconnect=False,  # what waited would be sent late; the relay connects anew, and sends again
            connect_timeout=self.timeout,
            closed_cb=ended,
            disconnected_cb=ended,
            error_cb=said_wrong,
            **self.options,
        )
        return _NATSSender(self, connection, lost)

    def __str__(self) -> str:
        return "NATS JetStream"


class _NATSSender:
    def __init__(self, target: ToNATS, connection: Any, lost: asyncio.Event) -> None:
        self.lost = lost
        self._target = target
        self._connection = connection

    async def send(self, message: Message) -> None:
        from nats import errors

        target = self._target
        headers = {"Nats-Msg-Id": message.id} | message.headers
        if target.stream is not None:
            headers["Nats-Expected-Stream"] = target.stream
        body = message.payload if target.body is None else target.body(message)
        subject = name_for(target.subject, message)
        try:
            reply = await self._connection.request(subject, body, timeout=target.timeout, headers=headers)
        except errors.NoRespondersError as error:
            raise await self._nobody(subject) from error
        except (errors.MaxPayloadError, errors.BadSubjectError, errors.BadHeaderError) as error:
            raise MessageRefused(f"NATS takes no such message: {said(error)}") from error
        except (errors.Error, OSError, TimeoutError, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and not self.lost.is_set():
                raise
            raise BrokerUnreachable(f"NATS: {said(error)}") from error
        answer = json.loads(reply.data)
        if "error" in answer:
            raise _meaning(answer["error"])
        if "stream" not in answer:
            raise MessageRefused(f"{subject!r} was answered by something that is no stream.")

    async def _nobody(self, subject: str) -> Exception:
        """Nobody answered for the subject: no stream takes it, or JetStream is away for now. The server says which."""
        from nats import errors

        asked = json.dumps({"subject": subject}).encode()
        try:
            reply = await self._connection.request(_STREAMS, asked, timeout=self._target.timeout)
            found = json.loads(reply.data)
        except errors.NoRespondersError:
            return BrokerUnavailable("NATS: JetStream does not answer.")
        except errors.TimeoutError:  # this account may not ask
            found = {}
        except (errors.Error, OSError) as error:
            return BrokerUnreachable(f"NATS: {said(error)}")
        if "error" in found:
            return _meaning(found["error"])
        if found.get("streams"):
            return BrokerUnavailable(f"NATS: the stream of {subject!r} does not answer.")
        return MessageRefused(f"No stream takes the subject {subject!r}.", remedy="Make the stream.")

    async def close(self) -> None:
        await self._connection.close()


def _meaning(error: Mapping[str, Any]) -> Exception:
    """From 500 on it is the server that cannot: no leader, no room. A subject that is full is the message's matter."""
    told = f"JetStream refuses: {error.get('description', error)}"
    if error.get("code", 0) >= 500 and "per subject" not in told:
        return BrokerUnavailable(told)
    return MessageRefused(told)
