"""Celery: tasks published by the user's own Celery application, in its protocol 2, under the message's id."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from semel.errors import BrokerUnavailable, BrokerUnreachable, MessageRefused, MessageUnfit
from semel.relay.connecting import said
from semel.relay.message import Message
from semel.relay.target import Sender
from semel.relay.targets.redis import meaning
from semel.relay.targets.threaded import Answers, ThreadedSender

_BATCH = 50

Arguments = Callable[[Message], tuple[Sequence[Any], Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class ToCelery:
    """Publishes tasks as ``app`` would: its broker, its routes, its serializer; over RabbitMQ with publisher confirms.

    ``tasks`` gives the task's name of a kind; without it the kind is the name. The arguments go by name, or as ``arguments``
    makes (args, kwargs) of a message. The task id is the message's id.
    """

    app: Any = field(repr=False)
    tasks: Mapping[str, str] | None = None
    queue: str | None = None
    """By default as the application routes the task."""
    arguments: Arguments | None = None
    threads: int = 4
    timeout: float = 10.0
    """Seconds to connect, and for the broker's answer."""

    async def open(self) -> Sender:
        return await ThreadedSender(
            self._connect,
            self._publish,
            lambda producer: producer.connection.release(),
            most=_BATCH,
            threads=self.threads,
        ).open()

    def _connect(self) -> Any:
        """A producer with a connection of its own, so that no other use of the application changes what it promises."""
        transport = dict(self.app.conf.broker_transport_options or {}) | {"confirm_publish": True}
        connection = self.app.connection_for_write(connect_timeout=self.timeout, transport_options=transport)
        connection.connect()
        return self.app.amqp.Producer(connection)

    def _publish(self, producer: Any, messages: Sequence[Message]) -> Answers:
        answers: list[Exception | None] = []
        for message in messages:
            try:
                answers.append(self._publish_one(producer, message))
            except BrokerUnreachable as error:
                return answers + [error] * (len(messages) - len(answers))
        return answers

    def _publish_one(self, producer: Any, message: Message) -> Exception | None:
        """Publish it, and wait for the broker's word on it."""
        try:
            send = self._prepared(message)
        except Exception as error:
            return error
        connection = producer.connection
        try:
            send(producer)
        except Exception as error:
            found = _meaning(connection, error)
            if isinstance(found, BrokerUnreachable):
                raise found from error
            if isinstance(error, connection.channel_errors):  # the broker has closed the channel
                producer.revive(connection.channel())
            return found
        return None

    def _prepared(self, message: Message) -> Callable[[Any], object]:
        """What publishes it by a producer."""
        name, args, kwargs = self._task(message)
        given = {} if self.queue is None else {"queue": self.queue}
        options = self.app.amqp.router.route(given, name, args, kwargs)
        task = self.app.amqp.as_task_v2(
            message.id, name, args, kwargs, root_id=message.id, origin="semel relay"
        )
        task.headers.update(message.headers)
        options |= {"retry": False, "timeout": self.timeout, "confirm_timeout": self.timeout}
        return lambda producer: self.app.amqp.send_task_message(producer, name, task, **options)

    def _task(self, message: Message) -> tuple[str, Sequence[Any], Mapping[str, Any]]:
        name = message.kind if self.tasks is None else self.tasks.get(message.kind)
        if name is None:
            raise MessageUnfit(
                f"ToCelery has no task for the kind {message.kind!r}.", remedy="Add it to tasks=."
            )
        args, kwargs = ((), message.arguments) if self.arguments is None else self.arguments(message)
        return name, args, kwargs

    def __str__(self) -> str:
        return f"Celery ({self.app.main or 'broker'})"


def _meaning(connection: Any, error: Exception) -> Exception:
    """What an error says about the one message that was being published."""
    import amqp
    from kombu.exceptions import OperationalError

    if isinstance(error, amqp.exceptions.MessageNacked):
        return MessageRefused("The broker refused the task (a negative confirmation).")
    if isinstance(error, amqp.exceptions.ConnectionForced | amqp.exceptions.Blocked):
        return BrokerUnavailable(f"Celery's broker: {said(error)}")
    if isinstance(error, amqp.exceptions.ChannelError):
        return MessageRefused(f"Celery's broker refused the task: {said(error)}")
    if isinstance(error, connection.channel_errors) and connection.transport.driver_type == "redis":
        return meaning(error, alone=True)
    if isinstance(
        error, (*connection.connection_errors, *connection.channel_errors, OperationalError, OSError)
    ):
        return BrokerUnreachable(f"Celery's broker: {said(error)}")
    return error
