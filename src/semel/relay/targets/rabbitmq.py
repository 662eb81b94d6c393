"""RabbitMQ: publisher confirms, persistent and mandatory messages, many on their way at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from semel.errors import BrokerUnavailable, BrokerUnreachable, MessageRefused
from semel.relay.connecting import said
from semel.relay.message import Message, Name, name_for
from semel.relay.target import Sender
from semel.relay.targets.threaded import settle

_OF_A_MESSAGE: Final = (501, 502, 503)
"""Codes with which a connection is closed for what was sent over it: a frame, a field, a command."""


@dataclass(frozen=True, slots=True)
class ToRabbitMQ:
    """Publishes to an exchange (by default the one that names a queue by the routing key); declares nothing.

    A message that no queue takes is refused: it is mandatory. Its ``message_id`` is the message's id, its ``type`` the kind.
    """

    url: str = field(repr=False)
    routing_key: Name = "{kind}"
    exchange: Name = ""
    headers: Mapping[str, Any] = field(default_factory=dict)
    body: Callable[[Message], bytes] | None = None
    content_type: str = "application/json"
    timeout: float = 10.0
    """Seconds to connect."""

    async def open(self) -> Sender:
        from pika import URLParameters
        from pika.adapters.asyncio_connection import AsyncioConnection

        loop = asyncio.get_running_loop()
        opened: asyncio.Future[None] = loop.create_future()
        sender = _RabbitMQSender(self)
        url = f"{self.url[:-1]}%2F" if self.url.endswith("//") else self.url  # as Celery writes the vhost "/"
        parameters = URLParameters(url)
        parameters.socket_timeout = parameters.stack_timeout = parameters.blocked_connection_timeout = (
            self.timeout
        )
        parameters.connection_attempts = 1

        def failed(_: Any, error: BaseException) -> None:
            sender.end(error)
            settle(opened, BrokerUnreachable(f"RabbitMQ: {said(error)}"))

        def ready(channel: Any) -> None:
            sender.channel = channel
            channel.add_on_close_callback(failed)
            channel.add_on_return_callback(sender.returned)
            channel.confirm_delivery(sender.confirmed, callback=lambda _: settle(opened, None))

        sender.connection = AsyncioConnection(
            parameters,
            on_open_callback=lambda connection: connection.channel(on_open_callback=ready),
            on_open_error_callback=failed,
            on_close_callback=failed,
            custom_ioloop=loop,
        )
        try:
            await opened
        except BaseException:
            await sender.close()
            raise
        return sender

    def __str__(self) -> str:
        return "RabbitMQ"


class _RabbitMQSender:
    def __init__(self, target: ToRabbitMQ) -> None:
        self.lost = asyncio.Event()
        self.connection: Any = None
        self.channel: Any = None
        self._target = target
        self._last = 0
        self._unconfirmed: dict[int, tuple[str, asyncio.Future[None]]] = {}
        """By delivery tag, which counts what was published: the message's id, and who waits."""
        self._returned: dict[str, str] = {}

    async def send(self, message: Message) -> None:
        from pika import BasicProperties
        from pika.exceptions import AMQPError

        target = self._target
        properties = BasicProperties(
            content_type=target.content_type,
            delivery_mode=2,
            message_id=message.id,
            type=message.kind,
            headers=dict(target.headers) | message.headers,
        )
        body = message.payload if target.body is None else target.body(message)
        exchange, routing_key = name_for(target.exchange, message), name_for(target.routing_key, message)
        if self.lost.is_set():
            raise BrokerUnreachable("The connection to RabbitMQ has ended.")
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            self.channel.basic_publish(exchange, routing_key, body, properties, mandatory=True)
        except AMQPError as error:
            raise BrokerUnreachable(f"RabbitMQ: {said(error)}") from error
        self._last += 1
        self._unconfirmed[self._last] = message.id, future
        await future

    def confirmed(self, frame: Any) -> None:
        """The broker's word on one message, or on all up to it."""
        tag, several = frame.method.delivery_tag, frame.method.multiple
        tags = [each for each in self._unconfirmed if each <= tag] if several else [tag]
        for each in tags:
            name, future = self._unconfirmed.pop(each, ("", None))
            why = self._returned.pop(name, None)
            if future is None:
                continue
            if frame.method.NAME == "Basic.Nack":
                settle(future, MessageRefused("RabbitMQ refused the message (a negative confirmation)."))
            elif why is not None:
                settle(future, MessageRefused(f"RabbitMQ has no queue for the message: {why}."))
            else:
                settle(future, None)

    def returned(self, _: Any, method: Any, properties: Any, __: bytes) -> None:
        """A mandatory message that no queue takes comes back before its confirmation."""
        where = f"exchange {method.exchange!r}, routing key {method.routing_key!r}"
        self._returned[properties.message_id] = f"{method.reply_text}, {where}"

    def end(self, error: BaseException) -> None:
        """The channel or the connection has ended: nobody knows of what is unconfirmed."""
        self.lost.set()
        unconfirmed, self._unconfirmed = self._unconfirmed, {}
        meaning = _meaning(error, alone=len(unconfirmed) == 1)
        for _, future in unconfirmed.values():
            settle(future, meaning)

    async def close(self) -> None:
        if self.connection is not None and not (self.connection.is_closing or self.connection.is_closed):
            self.connection.close()


def _meaning(error: BaseException, *, alone: bool) -> Exception:
    """What an end says of the messages on their way: a channel is closed for one of them, a connection for other reasons."""
    from pika.exceptions import ChannelClosedByBroker, ConnectionBlockedTimeout, ConnectionClosedByBroker

    told = f"RabbitMQ: {said(error)}"
    of_one = isinstance(error, ChannelClosedByBroker) or (
        isinstance(error, ConnectionClosedByBroker) and error.reply_code in _OF_A_MESSAGE
    )
    if of_one and alone:
        return MessageRefused(told)
    if isinstance(error, ConnectionBlockedTimeout | ConnectionClosedByBroker) and not of_one:
        return BrokerUnavailable(told)
    return BrokerUnreachable(told)
