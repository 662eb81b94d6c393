"""Asserting what was enqueued, also inside the transaction that enqueues it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from semel.core.states import Status
from semel.errors import ConfigurationError
from semel.queue.app import App
from semel.queue.job import BoundJob, Job
from semel.sql import Catalogue
from semel.store.pools import Database
from semel.store.run import run, run_async
from semel.store.sessions import async_session_for, sync_session_for
from semel.testing.jobs import JobRow, Stored, find_stored
from semel.testing.matching import Wanted, refusal, shortfall

Which: TypeAlias = Job[..., Any] | BoundJob[...] | str | None
"""A job, its kind, or None for any."""

Arguments: TypeAlias = Mapping[str, Any]


def enqueued(where: App | Any, job: Which = None, /, **arguments: Any) -> list[JobRow]:
    """The stored jobs, oldest first, that have at least these arguments, whatever became of them since.

    ``where`` is the application, or your connection or session: then what its open transaction has enqueued is
    there too.
    """
    wanted = Wanted.of(job, arguments)
    return wanted.split(_Place.of(where, job, None).look(wanted.kind))[0]


async def aenqueued(where: App | Any, job: Which = None, /, **arguments: Any) -> list[JobRow]:
    """`enqueued`, for asyncio."""
    wanted = Wanted.of(job, arguments)
    return wanted.split(await _Place.of(where, job, None).alook(wanted.kind))[0]


def assert_enqueued(
    where: App | Any,
    job: Which,
    arguments: Arguments | None = None,
    *,
    count: int | None = 1,
    queue: str | None = None,
    status: Status | str | None = None,
    unique_key: str | None = None,
    tx: Any = None,
) -> list[JobRow]:
    """Fail unless exactly ``count`` such jobs are stored (None: at least one); answers them.

    ``arguments`` need only name some. With ``tx``, or your connection in the application's place, looks inside
    your transaction.
    """
    wanted = Wanted.of(job, arguments or {}, queue=queue, status=status, unique_key=unique_key)
    found, rest = wanted.split(_Place.of(where, job, tx).look(wanted.kind))
    problem = shortfall(wanted, count, found, rest)
    if problem:
        raise AssertionError(problem)
    return found


async def aassert_enqueued(
    where: App | Any,
    job: Which,
    arguments: Arguments | None = None,
    *,
    count: int | None = 1,
    queue: str | None = None,
    status: Status | str | None = None,
    unique_key: str | None = None,
    tx: Any = None,
) -> list[JobRow]:
    """`assert_enqueued`, for asyncio."""
    wanted = Wanted.of(job, arguments or {}, queue=queue, status=status, unique_key=unique_key)
    found, rest = wanted.split(await _Place.of(where, job, tx).alook(wanted.kind))
    problem = shortfall(wanted, count, found, rest)
    if problem:
        raise AssertionError(problem)
    return found


def refute_enqueued(
    where: App | Any,
    job: Which = None,
    arguments: Arguments | None = None,
    *,
    queue: str | None = None,
    status: Status | str | None = None,
    unique_key: str | None = None,
    tx: Any = None,
) -> None:
    """Fail if any such job is stored."""
    wanted = Wanted.of(job, arguments or {}, queue=queue, status=status, unique_key=unique_key)
    found, _ = wanted.split(_Place.of(where, job, tx).look(wanted.kind))
    if found:
        raise AssertionError(refusal(wanted, found))


async def arefute_enqueued(
    where: App | Any,
    job: Which = None,
    arguments: Arguments | None = None,
    *,
    queue: str | None = None,
    status: Status | str | None = None,
    unique_key: str | None = None,
    tx: Any = None,
) -> None:
    """`refute_enqueued`, for asyncio."""
    wanted = Wanted.of(job, arguments or {}, queue=queue, status=status, unique_key=unique_key)
    found, _ = wanted.split(await _Place.of(where, job, tx).alook(wanted.kind))
    if found:
        raise AssertionError(refusal(wanted, found))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where to look: on the caller's connection, or on one of the application's."""

    catalogue: Catalogue
    tx: Any
    database: Database | None

    @classmethod
    def of(cls, where: Any, job: Which, tx: Any) -> _Place:
        if isinstance(where, App):
            return cls(where.catalogue, tx, where.database)
        if tx is not None:
            raise ConfigurationError(
                f"The first argument is a {type(where).__qualname__} and tx= is given too.",
                remedy="Give the application and tx=, or only your connection.",
            )
        job = job.job if isinstance(job, BoundJob) else job
        return cls(job.database.catalogue if isinstance(job, Job) else Catalogue(), where, None)

    def look(self, kind: str | None) -> Stored:
        if self.tx is not None or self.database is None:
            return run(find_stored(kind), sync_session_for(self.tx, self.catalogue))
        with self.database.session() as session:
            return run(find_stored(kind), session)

    async def alook(self, kind: str | None) -> Stored:
        if self.tx is not None or self.database is None:
            return await run_async(find_stored(kind), async_session_for(self.tx, self.catalogue))
        async with self.database.async_session() as session:
            return await run_async(find_stored(kind), session)
