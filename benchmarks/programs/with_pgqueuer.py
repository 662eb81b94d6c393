"""PgQueuer on asyncpg, with a pool for the worker."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Sequence
from datetime import timedelta

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from benchmarks.programs.marks import mark
from benchmarks.programs.serving import URL, Program, arguments, setting


def payload(number: int) -> bytes:
    return json.dumps(arguments(number)).encode()


async def work() -> None:
    pool = await asyncpg.create_pool(URL, min_size=2, max_size=int(setting("pool", "5")))
    queue = PgQueuer(AsyncpgPoolDriver(pool))

    @queue.entrypoint("nothing")
    async def nothing(job: Job) -> None:
        mark(json.loads(job.payload)["i"])

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, queue.shutdown.set)
    await queue.run(batch_size=int(setting("concurrency", "100")), dequeue_timeout=timedelta(seconds=30))


class Connected(Program):
    """Enqueues on one connection."""

    async def do(self, words: Sequence[str]) -> None:
        if words[0] == "work":
            await work()
            return
        queries = Queries(AsyncpgDriver(await asyncpg.connect(URL)))

        async def many(numbers: Sequence[int]) -> None:
            await queries.enqueue(
                ["nothing"] * len(numbers), [payload(number) for number in numbers], [0] * len(numbers)
            )

        await Program(
            setup=queries.install,
            one=lambda number: queries.enqueue("nothing", payload(number), 0),
            many=many,
        ).do(words)


if __name__ == "__main__":
    Connected().main()
