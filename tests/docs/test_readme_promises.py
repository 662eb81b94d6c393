"""What the README promises of schedules, in small: several workers, one job a tick, also where jobs are deleted."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import psycopg

from semel import App

LIMIT = 60


def test_three_workers_make_one_job_a_tick(database_url: str) -> None:
    app = App(database_url)

    @app.job
    @app.schedule(every="1 s")
    async def beat() -> None: ...

    async def work() -> list[int]:
        made: list[int] = []
        async with AsyncExitStack() as stack, asyncio.timeout(LIMIT):
            for _ in range(3):
                await stack.enter_async_context(app.worker())
            connection = await psycopg.AsyncConnection.connect(database_url, autocommit=True)
            stack.push_async_callback(connection.close)
            while len(made) < 5:
                made += await _take(connection, "DELETE FROM semel.jobs_done RETURNING id")
                await asyncio.sleep(0.05)
        async with await psycopg.AsyncConnection.connect(database_url) as connection:
            made += await _take(connection, "SELECT id FROM semel.all_jobs")
            assert await _take(connection, "SELECT count(*) FROM semel.schedule_ticks") == [len(made)]
        return made

    made = asyncio.run(work())
    assert len(set(made)) == len(made)


async def _take(connection: psycopg.AsyncConnection, statement: str) -> list[int]:
    cursor = await connection.execute(statement.encode())
    return [row[0] for row in await cursor.fetchall()]
