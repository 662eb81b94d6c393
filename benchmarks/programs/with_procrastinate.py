"""Procrastinate: an async task on its psycopg connector."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import procrastinate

from benchmarks.programs.marks import mark
from benchmarks.programs.serving import URL, Program, arguments, setting

app = procrastinate.App(
    connector=procrastinate.PsycopgConnector(
        conninfo=URL, min_size=1, max_size=int(setting("pool", "10")) if "work" in sys.argv else 1
    )
)


@app.task(name="nothing", queue="bench")
async def nothing(i: int, to: str) -> None:
    mark(i)


async def setup() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def one(number: int) -> None:
    await nothing.defer_async(**arguments(number))


async def many(numbers: Sequence[int]) -> None:
    await nothing.batch_defer_async(*[arguments(number) for number in numbers])


async def work() -> None:
    await app.run_worker_async(
        queues=["bench"], concurrency=int(setting("concurrency", "30")), delete_jobs="never"
    )


class Opened(Program):
    """Opens the application first, except where it installs its tables."""

    async def do(self, words: Sequence[str]) -> None:
        if words[0] == "setup":
            await super().do(words)
            return
        async with app.open_async():
            await super().do(words)


if __name__ == "__main__":
    Opened(setup, one, many, work).main()
