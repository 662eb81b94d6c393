"""Sidekiq: jobs pushed to Redis as Sidekiq's own client pushes them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from semel.errors import BrokerUnavailable, BrokerUnreachable, MessageRefused, MessageUnfit
from semel.relay.connecting import said
from semel.relay.message import Message, Name, name_for
from semel.relay.target import Sender
from semel.relay.targets.threaded import Answers, ThreadedSender

_BATCH = 100
_OF_THE_MESSAGE = ("WRONGTYPE", "string exceeds maximum", "invalid bulk length")
"""Redis's words for what another message would not meet: the key of its queue is no list, it is too large."""


@dataclass(frozen=True, slots=True)
class ToSidekiq:
    """Pushes to the Redis at ``url``. Its reply says that Redis has the job in memory; what survives a crash of Redis, its
    own ``appendonly`` decides.

    ``classes`` gives the Ruby class of a kind, or a pair: the class, and the names of the arguments in the order of its
    ``perform``. Without names it gets one hash of all arguments. ``namespace`` goes before each key of Redis.
    """

    url: str = field(repr=False)
    classes: Mapping[str, str | tuple[str, Sequence[str]]]
    queue: Name = "default"
    retry: bool | int = True
    namespace: str | None = None
    timeout: float = 10.0
    """Seconds that Redis may take to answer."""

    async def open(self) -> Sender:
        return await ThreadedSender(
            self._connect, self._publish, lambda redis: redis.close(), most=_BATCH, threads=1
        ).open()

    def _connect(self) -> Any:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        connection = redis.Redis.from_url(
            self.url,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=self.timeout,
            socket_connect_timeout=self.timeout,
        )
        connection.ping()
        return connection

    def _publish(self, connection: Any, messages: Sequence[Message]) -> Answers:
        """A batch as one transaction of Redis: all of it is pushed, or nothing."""
        import redis

        answers: list[Exception | None] = [None] * len(messages)
        pipeline = connection.pipeline(transaction=True)
        pushed = []
        for place, message in enumerate(messages):
            try:
                queue = name_for(self.queue, message)
                job = msgspec.json.encode(self.job(message, queue))
            except Exception as error:
                answers[place] = error
                continue
            pipeline.sadd(self._key("queues"), queue)
            pipeline.lpush(self._key(f"queue:{queue}"), job)
            pushed.append(place)
        refused: Exception | None = None
        try:
            pipeline.execute()
        except (redis.RedisError, OSError) as error:
            refused = _meaning(error, alone=len(pushed) == 1)
        for place in pushed:
            answers[place] = refused
        return answers

    def job(self, message: Message, queue: str) -> dict[str, Any]:
        """The job hash that Sidekiq reads."""
        known = self.classes.get(message.kind)
        if known is None:
            raise MessageUnfit(
                f"ToSidekiq has no class for the kind {message.kind!r}.", remedy="Add it to classes=."
            )
        name, names = (known, None) if isinstance(known, str) else known
        now = time.time()
        return {
            "class": name,
            "args": [message.arguments] if names is None else _positional(message, names),
            "jid": jid(message),
            "queue": queue,
            "retry": self.retry,
            "created_at": now,
            "enqueued_at": now,
        }

    def _key(self, name: str) -> str:
        return name if self.namespace is None else f"{self.namespace}:{name}"

    def __str__(self) -> str:
        return "Sidekiq (Redis)"


def _meaning(error: Exception, *, alone: bool) -> Exception:
    """A full memory, a replica, a disk that cannot be written and the like say nothing about the messages."""
    told = said(error).rpartition("of pipeline caused error: ")[
        2
    ]  # before that the client shows a part of the job
    if not any(each in told for each in _OF_THE_MESSAGE):
        return BrokerUnavailable(f"Redis: {told}")
    if alone:
        return MessageRefused(f"Redis refuses: {told}")
    return BrokerUnreachable(f"Redis refuses one of several: {told}")  # each is then sent alone


def jid(message: Message) -> str:
    """The job's id for Sidekiq: 24 hexadecimal digits, made from the message's."""
    return hashlib.sha256(message.id.encode()).hexdigest()[:24]


def _positional(message: Message, names: Sequence[str]) -> list[Any]:
    arguments = message.arguments
    unknown = arguments.keys() - set(names)
    if unknown:
        raise MessageUnfit(
            f"The arguments of {message.kind} that ToSidekiq has no place for: {', '.join(sorted(unknown))}.",
            remedy="Name them in classes=, in the order of perform's parameters.",
        )
    given = [arguments.get(name) for name in names]
    while given and names[len(given) - 1] not in arguments:
        given.pop()  # what was left out at the end gets perform's own default
    return given
