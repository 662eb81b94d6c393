"""Oban for Python, on uvloop as its own command line is."""

from __future__ import annotations

from collections.abc import Sequence

from oban import Oban, job
from oban.schema import install

from benchmarks.programs.marks import mark
from benchmarks.programs.serving import URL, Program, arguments, setting, told_to_stop


@job(queue="bench")
async def nothing(i: int, to: str) -> None:
    mark(i)


class Opened(Program):
    async def do(self, words: Sequence[str]) -> None:
        pool = await Oban.create_pool(URL, min_size=1, max_size=int(setting("pool", "10")))

        async def work() -> None:
            async with Oban(pool=pool, queues={"bench": int(setting("concurrency", "50"))}):
                await told_to_stop()

        async def setup() -> None:
            await install(pool)

        if words[0] == "work":
            await work()
        elif words[0] == "setup":
            await setup()
        else:
            async with Oban(pool=pool) as oban:
                await Program(
                    one=lambda number: oban.enqueue(nothing.new(**arguments(number))),
                    many=lambda numbers: oban.enqueue_many(
                        [nothing.new(**arguments(number)) for number in numbers]
                    ),
                ).do(words)
        await pool.close()


if __name__ == "__main__":
    Opened().main()
