"""The command line that the Python programs share: setup, one N, many N, fed N RATE, pickup N, work.

Answers are a line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.programs.marks import PICKED_UP

URL = os.environ.get("BENCHMARK_URL", "")
REDIS = os.environ.get("BENCHMARK_REDIS", "")
WARM_UP = 20
BATCH = 1_000


def setting(name: str, default: str = "") -> str:
    """One of the settings of the peer, as peers.py names them."""
    return os.environ.get(f"BENCHMARK_{name.upper()}", default)


def arguments(number: int) -> dict[str, Any]:
    """What every job of every queue carries."""
    return {"i": number, "to": f"user{number}@example.com"}


@dataclass(frozen=True)
class Program:
    """What a queue can do; numbers of jobs are given, the arguments are `arguments(number)`."""

    setup: Callable[[], Awaitable[None]] | None = None
    one: Callable[[int], Awaitable[object]] | None = None
    """Store one job, committed when it returns."""
    many: Callable[[Sequence[int]], Awaitable[object]] | None = None
    """Store up to BATCH jobs by the queue's own bulk call."""
    work: Callable[[], Awaitable[None]] | None = None
    """Run jobs until SIGTERM."""

    async def do(self, words: Sequence[str]) -> None:
        """What the command line asks for."""
        command, count = words[0], int(words[1]) if len(words) > 1 else 0
        if command == "setup" and self.setup:
            await self.setup()
        elif command == "work" and self.work:
            await self.work()
        elif command == "one" and self.one:
            answer(await _one(self.one, count))
        elif command == "many" and self.many:
            answer(await _many(self.many, count))
        elif command == "fed" and self.many:
            await _fed(self.many, count, int(words[2]))
        elif command == "pickup" and self.one:
            answer(await _spaced(self.one, count))
        else:
            raise SystemExit(f"{command}: this program cannot do that")

    def main(self) -> None:
        """Run it, on uvloop where the settings say so."""
        if setting("uvloop"):
            import uvloop

            uvloop.run(self.do(sys.argv[1:]))
        else:
            asyncio.run(self.do(sys.argv[1:]))


def answer(found: dict[str, object]) -> None:
    print(json.dumps(found), flush=True)


async def _one(store: Callable[[int], Awaitable[object]], count: int) -> dict[str, object]:
    """Awaited one after another. Numbers start above those whose start is noted."""
    for number in range(WARM_UP):
        await store(PICKED_UP + number)
    began = time.monotonic()
    for number in range(count):
        await store(PICKED_UP + WARM_UP + number)
    return {"jobs": count + WARM_UP, "per_second": count / (time.monotonic() - began)}


async def _many(store: Callable[[Sequence[int]], Awaitable[object]], count: int) -> dict[str, object]:
    """The first call connects; the rate is of those after it."""
    began = time.monotonic()
    unmeasured = 0
    for first in range(0, count, BATCH):
        await store(range(first, min(first + BATCH, count)))
        if first == 0 and count > BATCH:
            began, unmeasured = time.monotonic(), BATCH
    return {"jobs": count, "per_second": (count - unmeasured) / (time.monotonic() - began)}


async def _spaced(store: Callable[[int], Awaitable[object]], count: int) -> dict[str, object]:
    """One each 50 ms; answers when each call began, and when it returned, which is after its commit."""
    called, committed = [], []
    began = time.monotonic()
    for number in range(count):
        await asyncio.sleep(max(0.0, began + number * 0.05 - time.monotonic()))
        called.append(time.monotonic())
        await store(number)
        committed.append(time.monotonic())
    return {"called": called, "committed": committed}


async def _fed(store: Callable[[Sequence[int]], Awaitable[object]], count: int, a_second: int) -> None:
    """So many a second, ten at a time."""
    began = time.monotonic()
    for first in range(0, count, 10):
        await asyncio.sleep(max(0.0, began + first / a_second - time.monotonic()))
        await store(range(first, min(first + 10, count)))


async def told_to_stop() -> None:
    """Until SIGTERM, for queues that leave signals to the application."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
