"""Kafka: an idempotent producer with acks=all; the ordering key as the record's key, so that a key keeps its partition."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from semel.errors import BrokerUnavailable, BrokerUnreachable, MessageRefused
from semel.relay.connecting import said
from semel.relay.message import Message, Name, name_for
from semel.relay.target import Sender


@dataclass(frozen=True, slots=True)
class ToKafka:
    """Produces to ``topic``. Done when all in-sync replicas have the record (``acks="all"``).

    The record's key is the ordering key, else the message's id. ``options`` go to ``aiokafka.AIOKafkaProducer``.
    """

    servers: str | list[str]
    topic: Name
    body: Callable[[Message], bytes] | None = None
    timeout: float = 20.0
    """Seconds that the producer tries by itself, before the connection is given up."""
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    make_producer: Callable[..., Any] | None = field(default=None, repr=False)
    """By default ``aiokafka.AIOKafkaProducer``."""

    async def open(self) -> Sender:
        from aiokafka import AIOKafkaProducer

        producer = (self.make_producer or AIOKafkaProducer)(
            bootstrap_servers=self.servers,
            **{"request_timeout_ms": int(self.timeout * 1000)}
            | dict(self.options)
            | {"acks": "all", "enable_idempotence": True},
        )
        try:
            await producer.start()
        except BaseException:
            await producer.stop()
            raise
        return _KafkaSender(self, producer)

    def __str__(self) -> str:
        return "Kafka"


class _KafkaSender:
    def __init__(self, target: ToKafka, producer: Any) -> None:
        self.lost = asyncio.Event()
        self._target = target
        self._producer = producer

    async def send(self, message: Message) -> None:
        from aiokafka import errors

        target = self._target
        body = message.payload if target.body is None else target.body(message)
        headers = [(name, value.encode()) for name, value in message.headers.items()]
        topic = name_for(target.topic, message)
        try:
            await self._producer.send_and_wait(
                topic, value=body, key=(message.key or message.id).encode(), headers=headers
            )
        except (
            errors.MessageSizeTooLargeError,
            errors.RecordTooLargeError,
            errors.RecordListTooLargeError,
            errors.UnknownTopicOrPartitionError,
            errors.InvalidTopicError,
            errors.TopicAuthorizationFailedError,
            errors.PolicyViolationError,
            errors.InvalidTimestampError,
        ) as error:
            raise MessageRefused(f"Kafka refuses the record for {topic!r}: {said(error)}") from error
        except (
            errors.NotEnoughReplicasError,
            errors.NotEnoughReplicasAfterAppendError,
            errors.ClusterAuthorizationFailedError,
        ) as error:
            raise BrokerUnavailable(f"Kafka: {said(error)}") from error
        except (errors.KafkaError, OSError) as error:
            raise BrokerUnreachable(f"Kafka: {said(error)}") from error

    async def close(self) -> None:
        await self._producer.stop()
