"""Running one handler here and now, as a worker would, without a queue."""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

import psycopg

from semel.core.decide import Ending, NoHandler, Raised, RanTooLong, Returned, Unreadable, decide
from semel.core.job import ClaimedJob, NewJob
from semel.core.results import encode_result
from semel.core.retry import RetryPolicy
from semel.errors import ConfigurationError, PayloadUnreadable
from semel.queue.app import App
from semel.queue.context import make_context
from semel.queue.job import BoundJob, Job
from semel.store.connect import connect, connect_async
from semel.testing.loops import run_in_loop
from semel.testing.outcomes import AttemptOutcome

P = ParamSpec("P")
Connection = TypeVar("Connection")
logger = logging.getLogger("semel.testing")

INSTALLATION: Final = uuid.UUID("73656d65-6c00-5000-8000-74657374696e")
"""Names no installation; jobs' references are made from it and their ids."""

_CAUGHT: Final = (Exception, SystemExit, asyncio.CancelledError)
"""What ends an attempt; a person's Ctrl-C and pytest's own fail() and skip() end the test instead."""

_Call: TypeAlias = tuple[Job[..., Any], tuple[Any, ...], dict[str, Any]]
_End: TypeAlias = tuple[Any, BaseException | None, Ending]


@dataclass(slots=True)
class _State:
    """What the context asks of its worker."""

    lost: bool = False
    stopping: bool = False
    reports: list[tuple[float | None, str | None]] = field(default_factory=list)

    def report(self, fraction: float | None, message: str | None) -> None:
        self.reports.append((fraction, message))


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineWorker:
    """Runs handlers here and now. `run_inline` is one with nothing chosen.

    ``attempt`` and ``crashes`` are what the context says; ``max_attempts`` decides with it whether an error is
    the last. With ``job_id`` set, runs share the job's reference, as attempts of one job do.
    """

    app: App
    attempt: int = 1
    max_attempts: int | None = None
    """None: as the job says."""
    crashes: int = 0
    job_id: int | None = None
    """None: a new one for each run."""

    def run(
        self, job: Job[P, Any] | BoundJob[P] | NewJob, /, *args: P.args, **kwargs: P.kwargs
    ) -> AttemptOutcome:
        """Run one attempt, in this thread. An ``async def`` handler gets an event loop of its own.

        A job with ``transaction=True`` gets the connection of ``job.using(tx=…)``, with a savepoint around the
        handler's work, or else one of its own, which is committed where the handler returns.
        """
        new, tx = _new(job, args, kwargs)
        return self.run_new(new, tx)

    async def arun(
        self, job: Job[P, Any] | BoundJob[P] | NewJob, /, *args: P.args, **kwargs: P.kwargs
    ) -> AttemptOutcome:
        """`run`, for asyncio: on this event loop; a ``def`` handler on a thread, as in a worker."""
        new, tx = _new(job, args, kwargs)
        return await self.arun_new(new, tx)

    def run_new(self, new: NewJob, tx: Any = None) -> AttemptOutcome:
        """`run`, for a job that was made before."""
        handler = self.app.jobs.get(new.kind)
        if handler is not None and handler.is_async:
            return run_in_loop(self.app, f"{new.kind}, an async def,", lambda: self.arun_new(new, tx))
        attempt = _Attempt(self.app, self._claimed(new), tx)
        return attempt.outcome(attempt.prepare() or attempt.call())

    async def arun_new(self, new: NewJob, tx: Any = None) -> AttemptOutcome:
        """`arun`, for a job that was made before."""
        attempt = _Attempt(self.app, self._claimed(new), tx)
        end = attempt.prepare()
        if end is None:
            asynchronous = attempt.handler.is_async
            end = await attempt.acall() if asynchronous else await asyncio.to_thread(attempt.call)
        return attempt.outcome(end)

    def _claimed(self, new: NewJob) -> ClaimedJob:
        options = new.options
        now = datetime.now(UTC)
        return ClaimedJob(
            id=secrets.randbits(62) if self.job_id is None else self.job_id,
            claim=1,
            worker=0,
            kind=new.kind,
            payload=new.payload,
            attempt=self.attempt,
            max_attempts=options.max_attempts if self.max_attempts is None else self.max_attempts,
            crashes=self.crashes,
            queue=options.queue,
            priority=options.priority,
            run_at=options.run_at or (now if options.delay is None else now + options.delay),
        )


def run_inline(
    app: App, job: Job[P, Any] | BoundJob[P] | NewJob, /, *args: P.args, **kwargs: P.kwargs
) -> AttemptOutcome:
    """Run one handler now, as a worker of ``app`` would, and say how the attempt ended; nothing is queued.

    Raises ArgumentError as `Job.enqueue` does. For ``tx``, `Job.using`; for a chosen attempt, `InlineWorker`.
    """
    return InlineWorker(app=app).run(job, *args, **kwargs)


async def arun_inline(
    app: App, job: Job[P, Any] | BoundJob[P] | NewJob, /, *args: P.args, **kwargs: P.kwargs
) -> AttemptOutcome:
    """`run_inline`, for asyncio."""
    return await InlineWorker(app=app).arun(job, *args, **kwargs)


class _Attempt:
    """One run of one handler."""

    def __init__(self, app: App, job: ClaimedJob, tx: Any) -> None:
        self._app = app
        self._job = job
        self._tx = tx
        self._state = _State()
        self._prepared: _Call | None = None

    @property
    def handler(self) -> Job[..., Any]:
        assert self._prepared is not None
        return self._prepared[0]

    def prepare(self) -> _End | None:
        """Find the handler and decode the payload; where that fails, the attempt's end."""
        handler = self._app.jobs.get(self._job.kind)
        if handler is None:
            return None, None, NoHandler()
        if handler.transaction and self._tx is not None:
            _checked(self._tx, psycopg.AsyncConnection if handler.is_async else psycopg.Connection, self._job)
        try:
            args, kwargs = handler.signature.decode(self._job.payload)
        except PayloadUnreadable as error:
            return None, error, Unreadable(error)
        self._prepared = handler, args, kwargs
        return None

    def call(self) -> _End:
        handler, args, kwargs = self._call
        try:
            if handler.transaction:
                with self._connection() as connection:
                    result = handler.function(*self._leading(connection), *args, **kwargs)
            else:
                result = handler.function(*self._leading(), *args, **kwargs)
        except _CAUGHT as error:
            return None, error, Raised(error)
        return result, None, Returned(self._encode(result))

    async def acall(self) -> _End:
        """In a task of its own, which the job's time-out cancels."""
        timeout = self.handler.timeout
        task = asyncio.create_task(self._acall())
        try:
            await asyncio.wait({task}, timeout=None if timeout is None else timeout.total_seconds())
            late = not task.done()
            if late:
                task.cancel()
            result, error = await task
        except asyncio.CancelledError:
            task.cancel()
            raise
        if late and isinstance(error, asyncio.CancelledError) and timeout is not None:
            return None, None, RanTooLong(timeout)
        return result, error, Returned(self._encode(result)) if error is None else Raised(error)

    async def _acall(self) -> tuple[Any, BaseException | None]:
        handler, args, kwargs = self._call
        try:
            if handler.transaction:
                async with self._aconnection() as connection:
                    return await handler.function(*self._leading(connection), *args, **kwargs), None
            return await handler.function(*self._leading(), *args, **kwargs), None
        except _CAUGHT as error:
            return None, error

    def outcome(self, end: _End) -> AttemptOutcome:
        result, error, ending = end
        policy = RetryPolicy() if self._prepared is None else self.handler.retry
        settlement = decide(self._job.identity(), ending, policy, random.random)
        return AttemptOutcome(
            job=self._job,
            settlement=settlement,
            result=result,
            exception=error,
            progress=tuple(self._state.reports),
        )

    @property
    def _call(self) -> _Call:
        assert self._prepared is not None
        return self._prepared

    def _leading(self, connection: Any = None) -> tuple[Any, ...]:
        handler = self.handler
        leading: tuple[Any, ...] = ()
        if handler.context:
            timeout = handler.timeout
            deadline = None if timeout is None else time.monotonic() + timeout.total_seconds()
            context = make_context(
                self._job,
                installation=INSTALLATION,
                timeout=timeout,
                deadline=deadline,
                state=self._state,
                connection=connection,
            )
            leading = (context,)
        return (*leading, connection) if handler.transaction else leading

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection[Any]]:
        if self._tx is None:
            session = connect(self._app.url, self._app.catalogue, name="semel inline")
            with session.connection as connection, session.transaction():
                yield connection
            return
        connection = _checked(self._tx, psycopg.Connection, self._job)
        if not connection.autocommit:
            connection.execute("")  # begins the caller's transaction, so that what follows is a savepoint
        with connection.transaction():
            yield connection

    @asynccontextmanager
    async def _aconnection(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        if self._tx is None:
            url = await asyncio.to_thread(lambda: self._app.url)
            session = await connect_async(url, self._app.catalogue, name="semel inline")
            async with session.connection as connection, session.transaction():
                yield connection
            return
        connection = _checked(self._tx, psycopg.AsyncConnection, self._job)
        if not connection.autocommit:
            await connection.execute("")
        async with connection.transaction():
            yield connection

    def _encode(self, result: Any) -> bytes | None:
        """As in a worker: a result that cannot be stored is dropped, and the job is done all the same."""
        encoded, reason = encode_result(result, self._app.settings.payload_limit)
        if reason:
            logger.warning("job %s: its result would not be stored: %s", self._job.kind, reason)
        return encoded


def _checked(tx: Any, wanted: type[Connection], job: ClaimedJob) -> Connection:
    if not isinstance(tx, wanted):
        raise ConfigurationError(
            f"{job.kind} has transaction=True and takes a psycopg.{wanted.__name__}, as workers give it; "
            f"tx= is a {type(tx).__module__}.{type(tx).__qualname__}.",
            remedy="Give the driver's own connection, or leave out tx=: then it gets one of its own.",
        )
    return tx


def _new(
    job: Job[..., Any] | BoundJob[...] | NewJob, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[NewJob, Any]:
    match job:
        case NewJob():
            if args or kwargs:
                raise ConfigurationError(f"The job {job.kind} has its arguments already.")
            return job, None
        case BoundJob():
            return job.new(*args, **kwargs), job.tx
    return job.new(*args, **kwargs), None
