"""Enqueuing that runs the handler at once, in the caller's process, and stores nothing."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from semel.core.job import JobOptions, NewJob
from semel.errors import ConfigurationError
from semel.queue.app import App
from semel.store.pools import Database
from semel.store.run import Watch
from semel.store.sessions import async_session_for, sync_session_for
from semel.store.statement import Copy, Row, Rows, Statement
from semel.testing.outcomes import AttemptOutcome, raise_first
from semel.testing.running import InlineWorker

DEEPEST: Final = 50
"""Jobs that enqueue one another inline: each runs inside the one before."""

_depth: Final[ContextVar[int]] = ContextVar("semel_inline_depth", default=0)


@dataclass(slots=True)
class InlineRecord:
    """What ran inline, in the order in which it ended."""

    outcomes: list[AttemptOutcome] = field(default_factory=list)

    def of(self, kind: str) -> list[AttemptOutcome]:
        """The attempts of one kind of job."""
        return [outcome for outcome in self.outcomes if outcome.job.kind == kind]


@contextmanager
def inline(app: App, *, raise_errors: bool = True) -> Iterator[InlineRecord]:
    """Until the block ends, each ``enqueue`` of the application's jobs runs its handler at once, once.

    It answers `Enqueued` with ``created`` true. What a handler raises is raised by ``enqueue``, or with
    ``raise_errors=False`` only noted. It holds for every thread and task of this process. Not looked at: the
    time to run at, unique keys, priorities, whether the transaction of ``tx`` commits, further attempts.
    """
    database = app.database
    names = ("session", "async_session")
    if any(name in vars(database) for name in names):
        raise ConfigurationError(
            "This application's jobs run inline already.", remedy="Leave out one inline(…)."
        )
    record = InlineRecord()
    stand_in = _StandIn(app, database, record, raise_errors)
    for name in names:  # every job of the application holds this one database
        setattr(database, name, getattr(stand_in, name))
    try:
        yield record
    finally:
        for name in names:
            delattr(database, name)


class _StandIn:
    """Takes the place of an application's connections: what is enqueued on its sessions runs."""

    def __init__(self, app: App, database: Database, record: InlineRecord, raise_errors: bool) -> None:
        self._app = app
        self._catalogue = database.catalogue
        self._record = record
        self._raise_errors = raise_errors
        self._ids = itertools.count(secrets.randbits(40))

    @contextmanager
    def session(self, tx: Any = None) -> Iterator[_Session]:
        """Refuses the ``tx`` that a real one would refuse."""
        if tx is not None:
            sync_session_for(tx, self._catalogue)
        yield _Session(self, tx)

    @asynccontextmanager
    async def async_session(self, tx: Any = None) -> AsyncIterator[_AsyncSession]:
        if tx is not None:
            async_session_for(tx, self._catalogue)
        yield _AsyncSession(self, tx)

    def run(self, new: NewJob, tx: Any) -> int:
        worker = self._worker()
        with _deeper(new):
            return self._noted(worker, worker.run_new(new, tx))

    async def arun(self, new: NewJob, tx: Any) -> int:
        worker = self._worker()
        with _deeper(new):
            return self._noted(worker, await worker.arun_new(new, tx))

    def _worker(self) -> InlineWorker:
        return InlineWorker(app=self._app, job_id=next(self._ids))

    def _noted(self, worker: InlineWorker, outcome: AttemptOutcome) -> int:
        self._record.outcomes.append(outcome)
        if self._raise_errors:
            raise_first(outcome)
        assert worker.job_id is not None
        return worker.job_id


class _Session:
    """A session that runs what is inserted on it, and answers as the database would."""

    watch: Watch | None = None
    can_copy = False

    def __init__(self, stand_in: _StandIn, tx: Any) -> None:
        self._stand_in = stand_in
        self._tx = tx

    def execute(self, statement: Statement) -> Rows:
        rows: list[Row] = []
        for answer, new in _jobs(statement):
            rows.append((*answer, self._stand_in.run(new, self._tx)))
        return rows

    def copy(self, copy: Copy) -> Rows:
        raise NotImplementedError(copy.name)  # can_copy says so

    def transaction(self) -> nullcontext[None]:
        return nullcontext()


class _AsyncSession:
    """`_Session`, for asyncio."""

    watch: Watch | None = None
    can_copy = False

    def __init__(self, stand_in: _StandIn, tx: Any) -> None:
        self._stand_in = stand_in
        self._tx = tx

    async def execute(self, statement: Statement) -> Rows:
        rows: list[Row] = []
        for answer, new in _jobs(statement):
            rows.append((*answer, await self._stand_in.arun(new, self._tx)))
        return rows

    async def copy(self, copy: Copy) -> Rows:
        raise NotImplementedError(copy.name)

    def transaction(self) -> nullcontext[None]:
        return nullcontext()


def _jobs(statement: Statement) -> Iterator[tuple[Row, NewJob]]:
    """The jobs that a statement would insert, each with what its row of the answer begins with."""
    match statement.name:
        case "queue/enqueue" | "queue/enqueue_keyed":
            yield (), _new_job(statement.parameters)
        case "queue/enqueue_many":
            for row in msgspec.json.decode(statement.parameters["rows"], type=list[dict[str, msgspec.Raw]]):
                payload = bytes(row.pop("payload"))
                values = {name: msgspec.json.decode(value) for name, value in row.items()}
                yield (values["place"],), _new_job(values | {"payload": payload.decode()})
        case name:
            raise ConfigurationError(
                f"Jobs run inline here, so that the database holds none: {name} would find nothing.",
                remedy="Look at the outcomes of inline(…), or leave the block first.",
            )


def _new_job(values: Any) -> NewJob:
    run_at, delay = values.get("run_at"), values.get("delay")
    if isinstance(run_at, str):
        run_at = datetime.fromisoformat(run_at)
    options = JobOptions(
        queue=values["queue"],
        priority=values["priority"],
        max_attempts=values["max_attempts"],
        run_at=run_at,
        run_after=None if delay is None else timedelta(seconds=delay),
        unique_key=values.get("unique_key"),
        ordering_key=values.get("ordering_key"),
    )
    return NewJob(values["kind"], values["payload"].encode(), options)


@contextmanager
def _deeper(new: NewJob) -> Iterator[None]:
    depth = _depth.get()
    if depth >= DEEPEST:
        raise ConfigurationError(
            f"{DEEPEST} inline jobs run inside one another, the last of the kind {new.kind!r}: they enqueue one "
            "another without end.",
            remedy="Store them and use drain(…), which runs them one after the other.",
        )
    token = _depth.set(depth + 1)
    try:
        yield
    finally:
        _depth.reset(token)
