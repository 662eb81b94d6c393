"""What a Celery application's broker has: seen, counted and taken out, on Redis and on what speaks AMQP."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

_ANSWER_WITHIN: Final = 1.0
"""Seconds for a worker that is told to say what it has in hand; one that is stopped says nothing."""


class Broker:
    """Any broker: what waits is what the queue says; what is in hand is what the workers say."""

    def __init__(self, app: Any, queue: str) -> None:
        self.app = app
        self.queue = queue

    def look(self, queue: str, sent: Collection[str], workers: int) -> tuple[int, int]:
        """How many messages of others wait in a queue, and how many consume it besides our workers."""
        waiting, consumers = self._declared(queue)
        return max(0, waiting - len(sent)), max(0, consumers - workers)

    def pending(self, nodes: Sequence[str]) -> int:
        """Messages of the queue: waiting, and in these workers. One that does not answer has one."""
        in_hand, silent = self.in_hand(nodes)
        return self._declared(self.queue)[0] + in_hand.total() + silent

    def in_hand(self, nodes: Sequence[str]) -> tuple[Counter[str], int]:
        """The ids that these workers have (each as often as it is there), and how many workers did not answer."""
        if not nodes:
            return Counter(), 0
        inspect = self.app.control.inspect(destination=list(nodes), timeout=_ANSWER_WITHIN, limit=len(nodes))
        active = inspect.active() or {}
        silent = len(set(nodes) - set(active))
        told = [*active.values()]
        if not silent:
            told += [*(inspect.reserved() or {}).values(), *(inspect.scheduled() or {}).values()]
        tasks = [task.get("request", task) for each in told for task in each]
        return Counter(str(task["id"]) for task in tasks), silent

    def clear(self, sent: Collection[str], *, alone: bool) -> None:
        """Take out what was sent; where nothing else was there at the start, all."""
        with self._channel() as channel:
            if alone:
                channel.queue_purge(self.queue)
            else:
                self._take(channel, sent)

    def _take(self, channel: Any, sent: Collection[str]) -> None:
        """Get each message once; those of others go back when the channel closes, marked as delivered before."""
        for _ in range(self._declared(self.queue)[0]):
            message = channel.basic_get(self.queue)
            if message is None:
                return
            if str(message.headers.get("id")) in sent:
                channel.basic_ack(message.delivery_tag)

    def _declared(self, queue: str) -> tuple[int, int]:
        """Messages and consumers of a queue; none where there is no such queue yet."""
        with self._channel() as channel:
            told = channel.queue_declare(queue, passive=True)
            return int(told.message_count), int(told.consumer_count)
        return 0, 0

    @contextmanager
    def _channel(self) -> Iterator[Any]:
        """A channel for one question: the broker closes it where there is no such queue, which is no error here."""
        with self.app.connection_for_write() as connection:
            try:
                with connection.channel() as channel:
                    yield channel
            except connection.channel_errors as error:
                if getattr(error, "code", 404) != 404:
                    raise


class RedisBroker(Broker):
    """Redis, where each message can be looked at, and what was not acknowledged yet lies in a hash for all queues."""

    def look(self, queue: str, sent: Collection[str], workers: int) -> tuple[int, int]:
        with self._channel() as channel:
            waiting = [*self._waiting(channel, queue)]
            unacked = [message for _, message, key in self._unacked(channel) if key == queue]
            return sum(_id(each) not in sent for each in [*waiting, *unacked]), 0
        return 0, 0

    def pending(self, nodes: Sequence[str]) -> int:
        with self._channel() as channel:
            waiting = len([*self._waiting(channel, self.queue)])
            unacked = Counter(_id(message) for _, message, key in self._unacked(channel) if key == self.queue)
        in_hand, silent = self.in_hand(nodes)
        early = (in_hand - unacked).total()
        """Acknowledged when they began."""
        return waiting + unacked.total() + early + (0 if unacked else silent)

    def clear(self, sent: Collection[str], *, alone: bool) -> None:
        with self._channel() as channel:
            if alone:
                channel.queue_purge(self.queue)
            for tag, message, key in [*self._unacked(channel)]:
                if _id(message) in sent or (alone and key == self.queue):
                    channel.client.hdel(channel.unacked_key, tag)
                    channel.client.zrem(channel.unacked_index_key, tag)
            for name in self._lists(channel, self.queue):
                for raw in channel.client.lrange(name, 0, -1):
                    if _id(json.loads(raw)) in sent:
                        channel.client.lrem(name, 0, raw)

    def _waiting(self, channel: Any, queue: str) -> Iterator[dict[str, Any]]:
        for name in self._lists(channel, queue):
            for raw in channel.client.lrange(name, 0, -1):
                yield json.loads(raw)

    def _unacked(self, channel: Any) -> Iterator[tuple[Any, dict[str, Any], str]]:
        """Tag, message and queue; where a message is bound for a direct exchange its routing key names the queue."""
        for tag, raw in channel.client.hgetall(f"{_prefix(channel)}{channel.unacked_key}").items():
            message, exchange, key = json.loads(raw)
            yield tag, message, self._queue_of(exchange, key)

    def _queue_of(self, exchange: str, key: str) -> str:
        for name, queue in self.app.amqp.queues.items():
            if exchange and queue.exchange.name == exchange and queue.routing_key == key:
                return str(name)
        return key

    def _lists(self, channel: Any, queue: str) -> list[str]:
        return [
            f"{_prefix(channel)}{channel._q_for_pri(queue, priority)}"  # noqa: SLF001
            for priority in channel.priority_steps
        ]


def broker_of(app: Any, queue: str) -> Broker:
    """How this application's broker is asked."""
    driver = app.connection_for_write().transport.driver_type
    return (RedisBroker if driver == "redis" else Broker)(app, queue)


def _prefix(channel: Any) -> str:
    """Kombu puts it before the keys of some commands by itself; not of those that are asked here."""
    return str(getattr(channel, "global_keyprefix", "") or "")


def _id(message: dict[str, Any]) -> str:
    return str(
        (message.get("headers") or {}).get("id") or (message.get("properties") or {})["correlation_id"]
    )
