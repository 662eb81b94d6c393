"""Pushes a kept Sidekiq job to Redis again, as Sidekiq's own client does."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from semel.core.sidekiq import push_commands
from semel.errors import ConfigurationError, NotFound

ADAPTER: Final = "sidekiq"
_NEEDED: Final = ("class", "jid", "args", "queue")


class SidekiqResender:
    """Sends kept Sidekiq messages again, under the same jid, to the queue that they came from.

    ``redis`` is a URL, or a client of redis-py; ``namespace`` is that of the redis-namespace gem, where Sidekiq uses one.
    """

    adapter = ADAPTER

    def __init__(self, redis: Any, *, namespace: str | None = None) -> None:
        self._redis = connect_redis(redis) if isinstance(redis, str) else redis
        self._namespace = namespace

    def send(self, message: Mapping[str, Any], *, who: str, why: str) -> str:
        """Push it to its queue. What it had failed with before is not part of it: its retries begin anew."""
        missing = [name for name in _NEEDED if name not in message]
        if missing:
            raise NotFound(f"The message has no {missing[0]!r}: it is no job of Sidekiq's.")
        job = {name: value for name, value in message.items() if name != "adapter"}
        with self._redis.pipeline(transaction=True) as pipeline:
            for command in push_commands(job, at=time.time(), namespace=self._namespace):
                pipeline.execute_command(*command)
            pipeline.execute()
        return f"Job {job['jid']} is in the queue {job['queue']} of Sidekiq again."


def connect_redis(url: str) -> Any:
    """A client of redis-py; nothing is connected to yet. Raises ConfigurationError."""
    try:
        from redis import Redis
    except ImportError as error:
        raise ConfigurationError(
            "To push to Sidekiq's Redis, redis-py is needed.", remedy="pip install 'semel[sidekiq]'"
        ) from error
    try:
        return Redis.from_url(url)
    except ValueError as error:
        raise ConfigurationError(
            f"{url!r} leads to no Redis: {error}", remedy="Write redis://host:6379/0, as Sidekiq has it."
        ) from error
