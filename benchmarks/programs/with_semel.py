"""semel. BENCHMARK_JOB chooses the handler: nothing, on_thread or sleeping."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from benchmarks.programs.marks import mark
from benchmarks.programs.serving import URL, Program, setting
from semel.queue.app import App
from semel.queue.worker.options import WorkerOptions
from semel.queue.worker.supervisor import run_supervisor
from semel.store.migrate import migrate_database

app = App(URL, concurrency=int(setting("concurrency", "100")))


@app.job
async def nothing(i: int, to: str) -> None:
    mark(i)


@app.job
def on_thread(i: int, to: str) -> None:
    mark(i)


@app.job
async def sleeping(i: int, to: str) -> None:
    mark(i)
    await asyncio.sleep(0.01)


job = app.jobs[setting("job", "nothing")]


async def setup() -> None:
    migrate_database(URL)


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
