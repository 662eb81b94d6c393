"""Sidekiq: jobs pushed to Redis as Sidekiq's own client pushes them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from semel.core.sidekiq import push_commands
from semel.errors import MessageUnfit
from semel.relay.message import Message, Name, name_for
from semel.relay.target import Sender
from semel.relay.targets.redis import meaning
from semel.relay.targets.threaded import Answers, ThreadedSender

_BATCH = 100


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
                job = self.job(message, name_for(self.queue, message))
                commands = push_commands(job, at=time.time(), namespace=self.namespace)
            except Exception as error:
                answers[place] = error
                continue
            for command in commands:
                pipeline.execute_command(*command)
            pushed.append(place)
        refused: Exception | None = None
        try:
            pipeline.execute()
        except (redis.RedisError, OSError) as error:
            refused = meaning(error, alone=len(pushed) == 1)
        for place in pushed:
            answers[place] = refused
        return answers

    def job(self, message: Message, queue: str) -> dict[str, Any]:
        """The job hash that Sidekiq reads, without the time of its push."""
        known = self.classes.get(message.kind)
        if known is None:
            raise MessageUnfit(
                f"ToSidekiq has no class for the kind {message.kind!r}.", remedy="Add it to classes=."
            )
        name, names = (known, None) if isinstance(known, str) else known
        return {
            "class": name,
            "args": [message.arguments] if names is None else _positional(message, names),
            "jid": jid(message),
            "queue": queue,
            "retry": self.retry,
            "created_at": time.time(),
        }

    def __str__(self) -> str:
        return "Sidekiq (Redis)"


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
