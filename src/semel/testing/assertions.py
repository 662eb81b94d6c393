"""Asserting what was enqueued, also inside the transaction that enqueues it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from semel.core.states import Status
from semel.errors import ConfigurationError
from semel.queue.app import App
from semel.queue.job import BoundJob, Job
from semel.sql import Catalogue
from semel.store.run import run, run_async
from semel.store.sessions import async_session_for, sync_session_for
from semel.testing.jobs import JobRow, find_stored
from semel.testing.matching import Wanted, refusal, shortfall

Which: TypeAlias = Job[..., Any] | BoundJob[...] | str | None
"""A job, its kind, or None for any."""

Arguments: TypeAlias = Mapping[str, Any]


def enqueued(where: App | Any, job: Which = None, /, **arguments: Any) -> list[JobRow]:
    """The stored jobs, oldest first, that have at least these arguments, whatever became of them since.

    ``where`` is the application, or your connection or session: then what its open transaction has enqueued is
    there too.
    """
    app, tx = _place(where, job)
    return _find(app, tx, Wanted.of(job, arguments))[0]


async def aenqueued(where: App | Any, job: Which = None, /, **arguments: Any) -> list[JobRow]:
    """`enqueued`, for asyncio."""
    app, tx = _place(where, job)
    return (await _afind(app, tx, Wanted.of(job, arguments)))[0]


def assert_enqueued(
    app: App,
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

    ``arguments`` need only name some. With ``tx`` looks inside your transaction.
    """
    wanted = Wanted.of(job, arguments or {}, queue=queue, status=status, unique_key=unique_key)
    found, rest = _find(app, tx, wanted)
    problem = shortfall(wanted, count, found, rest)
    if problem:
        raise AssertionError(problem)
    return found


async def aassert_enqueued(
    app: App,
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
    found, rest = await _afind(app, tx, wanted)
    problem = shortfall(wanted, count, found, rest)
    if problem:
        raise AssertionError(problem)
    return found


def refute_enqueued(
    app: App,
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
    found, _ = _find(app, tx, wanted)
    if found:
        raise AssertionError(refusal(wanted, found))


async def arefute_enqueued(
    app: App,
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
    found, _ = await _afind(app, tx, wanted)
    if found:
        raise AssertionError(refusal(wanted, found))


def _place(where: Any, job: Which) -> tuple[App | Catalogue, Any]:
    """The application, or the catalogue that its jobs use and the caller's connection."""
    if isinstance(where, App):
        return where, None
    match job:
        case Job():
            return job.database.catalogue, where
        case BoundJob():
            return job.job.database.catalogue, where
    return Catalogue(), where


def _find(place: App | Catalogue, tx: Any, wanted: Wanted) -> tuple[list[JobRow], list[JobRow]]:
    operation = find_stored(wanted.kind)
    if isinstance(place, Catalogue) or tx is not None:
        return wanted.split(run(operation, sync_session_for(tx, _catalogue(place))))
    with place.database.session() as session:
        return wanted.split(run(operation, session))


async def _afind(place: App | Catalogue, tx: Any, wanted: Wanted) -> tuple[list[JobRow], list[JobRow]]:
    operation = find_stored(wanted.kind)
    if isinstance(place, Catalogue) or tx is not None:
        return wanted.split(await run_async(operation, async_session_for(tx, _catalogue(place))))
    async with place.database.async_session() as session:
        return wanted.split(await run_async(operation, session))


def _catalogue(place: App | Catalogue) -> Catalogue:
    if isinstance(place, Catalogue):
        return place
    if isinstance(place, App):
        return place.catalogue
    raise ConfigurationError(
        f"Give the application first, not a {type(place).__qualname__}.", remedy="The connection goes to tx=."
    )
