"""Celery: tasks published by the user's own Celery application, in its protocol 2, under the message's id."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from semel.errors import BrokerUnreachable, MessageRefused, MessageUnfit
from semel.relay.connecting import said
from semel.relay.message import Message
from semel.relay.target import Sender
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
        import amqp
        from kombu.exceptions import OperationalError

        connection = producer.connection
        broken = (*connection.connection_errors, *connection.channel_errors, OperationalError, OSError)
        try:
            name, args, kwargs = self._task(message)
            options = self.app.amqp.router.route(
                {} if self.queue is None else {"queue": self.queue}, name, args, kwargs
            )
            task = self.app.amqp.as_task_v2(
                message.id, name, args, kwargs, root_id=message.id, origin="semel relay"
            )
            task.headers.update(message.headers)
            self.app.amqp.send_task_message(
                producer,
                name,
                task,
                retry=False,
                timeout=self.timeout,
                confirm_timeout=self.timeout,
                **options,
            )
        except amqp.exceptions.MessageNacked:
            return MessageRefused("The broker refused the task (a negative confirmation).")
        except broken as error:
            raise BrokerUnreachable(f"Celery's broker: {said(error)}") from error
        except Exception as error:
            return error
        return None

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
