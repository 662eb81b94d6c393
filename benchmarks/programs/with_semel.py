"""semel. BENCHMARK_JOB chooses the handler: nothing, on_thread, sleeping or recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import psycopg

from benchmarks.programs.marks import mark
from benchmarks.programs.serving import URL, Program, setting
from semel.core.effects import Row
from semel.guard.once import Once
from semel.guard.operation import Operation
from semel.queue.app import App
from semel.queue.worker.options import WorkerOptions
from semel.queue.worker.supervisor import run_supervisor
from semel.store.migrate import migrate_database

app = App(URL, concurrency=int(setting("concurrency", "100")), stop_grace=float(setting("grace", "30")))
chosen = setting("job", "nothing")


@app.job
async def nothing(i: int, to: str) -> None:
    mark(i)


@app.job
async def warming(i: int, to: str) -> None:
    """Runs before what is measured, and is not marked."""


@app.job
def on_thread(i: int, to: str) -> None:
    mark(i)


@app.job
async def sleeping(i: int, to: str) -> None:
    mark(i)
    await asyncio.sleep(float(setting("sleep", "0.01")))


if chosen == "recorded":  # else the worker would look after operations as well

    @app.job(once=Once(app).operation("record", key="i", effect=Row()))
    async def recorded(op: Operation, i: int, to: str) -> None:
        mark(i)
        await op.connection.execute("INSERT INTO effects VALUES (%s, %s)", (i, to))


job = app.jobs[chosen]


async def setup() -> None:
    migrate_database(URL)
    if chosen == "recorded":
        with psycopg.connect(URL) as connection:
            connection.execute("CREATE TABLE effects (number bigint PRIMARY KEY, address text NOT NULL)")


async def one(number: int) -> None:
    job.enqueue(number, f"user{number}@example.com")


async def many(numbers: Sequence[int]) -> None:
    due = setting("due")
    bound = job.using(run_at=datetime.fromtimestamp(float(due), UTC)) if due else job
    bound.enqueue_many([(number, f"user{number}@example.com") for number in numbers])


def work() -> int:
    """One supervisor, as `semel worker` runs it."""
    return run_supervisor(
        WorkerOptions(
            app=f"{__spec__.name}:app",
            database=URL,
            children=int(setting("children", "1")),
            log_level="WARNING",
        )
    )


if __name__ == "__main__":
    import sys

    if sys.argv[1] == "work":
        sys.exit(work())
    Program(setup, one, many).main()
