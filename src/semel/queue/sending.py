"""New jobs on their way to the database: in the caller's transaction, or on a connection of the application's
own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from semel.core.job import Enqueued, NewJob
from semel.store.enqueue import enqueue, enqueue_many
from semel.store.pools import Database
from semel.store.run import run, run_async
from semel.store.sessions import can_copy


def send_one(database: Database, job: NewJob, tx: Any) -> Enqueued:
    """Store one job."""
    with database.session(tx) as session:
        return run(enqueue(job), session)


async def asend_one(database: Database, job: NewJob, tx: Any) -> Enqueued:
    """`send_one`, for asyncio."""
    async with database.async_session(tx) as session:
        return await run_async(enqueue(job), session)


def send_many(database: Database, jobs: Sequence[NewJob], tx: Any) -> list[Enqueued]:
    """Store all of them, or none."""
    if not jobs:
        return []
    with database.session(tx) as session:
        return run(enqueue_many(jobs, copy=can_copy(session)), session)


async def asend_many(database: Database, jobs: Sequence[NewJob], tx: Any) -> list[Enqueued]:
    """`send_many`, for asyncio."""
    if not jobs:
        return []
    async with database.async_session(tx) as session:
        return await run_async(enqueue_many(jobs, copy=can_copy(session)), session)
