"""Awa: an async handler, its client in Rust."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from awa import AsyncClient, Job

from benchmarks.programs.marks import mark
from benchmarks.programs.serving import URL, Program, arguments, setting, told_to_stop


@dataclass
class Nothing:
    i: int
    to: str


def made(number: int) -> Nothing:
    return Nothing(**arguments(number))


class Opened(Program):
    async def do(self, words: Sequence[str]) -> None:
        client = AsyncClient(URL)

        async def work() -> None:
            @client.task(Nothing, queue="bench")
            async def nothing(job: Job) -> None:
                mark(job.args.i)

            await client.start([("bench", int(setting("concurrency", "200")))], poll_interval_ms=50)
            await told_to_stop()
            await client.shutdown()

        await Program(
            setup=client.migrate,
            one=lambda number: client.insert(made(number), queue="bench"),
            many=lambda numbers: client.insert_many_copy([made(number) for number in numbers], queue="bench"),
            work=work,
        ).do(words)


if __name__ == "__main__":
    Opened().main()
