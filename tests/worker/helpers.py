"""What the worker's tests share: an application on a test's database, looks into it, and waits with a limit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import psycopg

from semel import App
from semel.core.report import JobRecord
from semel.sql import Catalogue
from semel.store.drivers.psycopg3 import PsycopgSession
from semel.store.run import run
from semel.store.statement import Operation
from semel.store.views import find_job

LIMIT = 40.0
"""Seconds that a test waits for anything, on a machine that others use too."""


def make_app(url: str, **settings: Any) -> App:
    """An application that looks often, for tests that wait."""
    return App(url, **({"poll": "20 ms"} | settings))


def ask(url: str, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """Run one statement on a connection of its own, with semel's schema in the search path; answers its rows."""
    with psycopg.connect(url, autocommit=True, options="-csearch_path=semel") as connection:
        cursor = connection.execute(statement, parameters or None)
        return cursor.fetchall() if cursor.description else []


def perform(url: str, operation: Operation[Any]) -> Any:
    """Run one operation of the store."""
    with psycopg.connect(url, autocommit=True) as connection:
        return run(operation, PsycopgSession(connection, Catalogue()))


def show(url: str, job_id: int) -> JobRecord:
    """Everything about one job, wherever it is."""
    record = perform(url, find_job(job_id))
    assert record is not None, f"there is no job {job_id}"
    return record


def status(url: str, job_id: int) -> str:
    return show(url, job_id).job.status.value


def drain(app: App, **options: Any) -> None:
    """Run a worker in this process until nothing is due and nothing runs."""

    async def work() -> None:
        async with app.worker(**options) as worker, asyncio.timeout(LIMIT):
            await worker.drain()

    asyncio.run(work())


def wait_until(condition: Callable[[], Any], what: str = "", limit: float = LIMIT) -> Any:
    """The first true answer of ``condition``; fails past the limit."""
    deadline = time.monotonic() + limit
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"waited {limit} s for {what or condition}"
        time.sleep(0.02)
    return answer


async def until(condition: Callable[[], Any], what: str = "", limit: float = LIMIT) -> Any:
    """`wait_until`, on the event loop."""
    deadline = time.monotonic() + limit
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"waited {limit} s for {what or condition}"
        await asyncio.sleep(0.01)
    return answer
