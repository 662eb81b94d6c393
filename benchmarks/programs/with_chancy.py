"""Chancy: an async job on the async executor; its logger, which writes a line a job, kept to warnings."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from chancy import Chancy, Queue, Worker, job

from benchmarks.programs.marks import mark
from benchmarks.programs.serving import URL, Program, arguments, setting


@job(queue="bench")
async def nothing(*, i: int, to: str) -> None:
    mark(i)


class Opened(Program):
    async def do(self, words: Sequence[str]) -> None:
        quiet = logging.getLogger("quiet")
        quiet.setLevel(logging.WARNING)
        async with Chancy(URL, log=quiet) as chancy:

            async def setup() -> None:
                await chancy.migrate()
                queue = Queue(
                    "bench",
                    concurrency=int(setting("concurrency", "100")),
                    executor=Chancy.Executor.Async,
                    polling_interval=1,
                    eager_polling=True,
                )
                await chancy.declare(queue, upsert=True)

            async def one(number: int) -> None:
                await chancy.push(nothing.job.with_kwargs(**arguments(number)))

            async def many(numbers: Sequence[int]) -> None:
                jobs = [nothing.job.with_kwargs(**arguments(number)) for number in numbers]
                async for _ in chancy.push_many(jobs, batch_size=1_000):
                    pass

            async def work() -> None:
                async with Worker(chancy) as worker:
                    await worker.wait_for_shutdown()

            await Program(setup, one, many, work).do(words)


if __name__ == "__main__":
    Opened().main()
