"""Dramatiq on Redis: a sync actor. Its own command line is the worker."""

from __future__ import annotations

from collections.abc import Sequence

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from benchmarks.programs.marks import mark
from benchmarks.programs.serving import REDIS, Program, arguments

broker = RedisBroker(url=REDIS)
dramatiq.set_broker(broker)


@dramatiq.actor(queue_name="bench")
def nothing(i: int, to: str) -> None:
    mark(i)


async def setup() -> None:
    broker.client.flushdb()


async def one(number: int) -> None:
    nothing.send(**arguments(number))


async def many(numbers: Sequence[int]) -> None:
    """It has no bulk call."""
    for number in numbers:
        nothing.send(**arguments(number))


if __name__ == "__main__":
    Program(setup, one, many).main()
