"""A job as the application declares it: the function, how it waits and runs, and the ways to enqueue it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final, Generic, Literal, ParamSpec, TypeAlias, TypeVar

from semel.core.arguments import Signature
from semel.core.durations import Duration
from semel.core.job import Enqueued, JobOptions, NewJob, check_name
from semel.core.retry import Policy
from semel.errors import ConfigurationError
from semel.guard.guarded import Guarded
from semel.queue.sending import asend_many, asend_one, send_many, send_one
from semel.store.pools import Database

P = ParamSpec("P")
R = TypeVar("R")
_NOTHING: Final = (None,) * 8
_BATCH: Final = 1_000
"""Items whose arguments are encoded at once."""

RunIn: TypeAlias = Literal["auto", "process"]
"""Where a handler runs: the event loop for ``async def`` and a thread for ``def``, or a process of its
own."""

Item: TypeAlias = tuple[Any, ...] | Mapping[str, Any] | NewJob
"""One job of many: its positional arguments, its arguments by name, or one made with ``new``."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Job(Generic[P, R]):
    """What ``@app.job`` leaves in place of the function. Calling it runs the function here and now, without
    the queue.

    Callers' signatures are the function's without the leading parameters that the worker fills in
    (``context=True``, then ``transaction=True``).
    """

    kind: str
    """The stable name that stored jobs carry; renaming it orphans those that wait."""
    function: Callable[..., R]
    signature: Signature
    is_async: bool
    context: bool
    transaction: bool
    run_in: RunIn
    queue: str
    priority: int
    max_attempts: int
    timeout: timedelta | None
    """None: an attempt may take any time."""
    retry: Policy
    payload_limit: int
    guarded: bool = False
    """Declared with ``once=``."""
    guard: Guarded[..., Any] | None = field(default=None, repr=False)
    """What guards it, where it is."""
    relayed: bool = False
    """It is forwarded to another queue, and its function never runs here."""
    database: Database = field(repr=False)
    _options: JobOptions = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            object.__setattr__(self, name, getattr(self.function, name, None))
        check_name(self.kind, name="kind")
        options = JobOptions(queue=self.queue, priority=self.priority, max_attempts=self.max_attempts)
        object.__setattr__(self, "_options", options)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.relayed:
            raise ConfigurationError(
                f"{self.kind} is for a relay: its function says what it takes, and never runs.",
                remedy=f"Enqueue it: {self.kind}.enqueue(…).",
            )
        if self.context or self.transaction:
            raise ConfigurationError(
                f"{self.kind} takes what only a worker has, so that it cannot be called directly.",
                remedy=f"Call {self.kind}.function(…) with your own, or run it through semel.testing.",
            )
        return self.function(*args, **kwargs)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Enqueued:
        """Store one job and commit it, on a connection of the application's own. In your transaction:
        `using(tx=…)`.

        Raises ArgumentError (before the database is touched), DatabaseUnreachable, SchemaMismatch.
        """
        return send_one(self.database, self._new(self._options, args, kwargs), None)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Enqueued:
        """`enqueue`, for asyncio."""
        return await asend_one(self.database, self._new(self._options, args, kwargs), None)

    def enqueue_many(self, items: Iterable[Item]) -> list[Enqueued]:
        """Store many jobs, all or none, answered in the order of ``items``; thousands go in by COPY.

        Where a unique key comes twice, the first wins and the others are answered with it.
        """
        return self.using().enqueue_many(items)

    async def aenqueue_many(self, items: Iterable[Item]) -> list[Enqueued]:
        """`enqueue_many`, for asyncio."""
        return await self.using().aenqueue_many(items)

    def new(self, *args: P.args, **kwargs: P.kwargs) -> NewJob:
        """A job that is checked but not stored, for ``app.enqueue_many``."""
        return self._new(self._options, args, kwargs)

    def using(
        self,
        *,
        tx: Any = None,
        run_after: Duration | datetime | None = None,
        run_at: datetime | None = None,
        priority: int | None = None,
        queue: str | None = None,
        max_attempts: int | None = None,
        unique_key: str | None = None,
        unique_for: Duration | None = None,
        ordering_key: str | None = None,
    ) -> BoundJob[P]:
        """The same job, to be enqueued otherwise.

        ``tx`` is your connection or session, and the job commits or rolls back with it: psycopg, asyncpg,
        SQLAlchemy (Core or ORM), Django's connection or alias. It is never committed here; one in autocommit
        commits each call. ``run_after`` counts on the database's clock; a datetime is taken as ``run_at``.
        ``unique_key`` lets one job of this kind in: until it is finished, and for at least ``unique_for`` from
        its enqueue or, without that, as long as the application keeps finished jobs (``keep_done``).
        """
        given = (run_after, run_at, priority, queue, max_attempts, unique_key, unique_for, ordering_key)
        if given == _NOTHING:
            return BoundJob(self, self._options, tx)
        if isinstance(run_after, datetime):
            if run_at is not None:
                raise ConfigurationError("run_at and run_after are both given.", remedy="Give one of them.")
            run_at, run_after = run_after, None
        options = JobOptions(
            queue=self.queue if queue is None else queue,
            priority=self.priority if priority is None else priority,
            max_attempts=self.max_attempts if max_attempts is None else max_attempts,
            run_at=run_at,
            run_after=run_after,
            unique_key=unique_key,
            unique_for=unique_for,
            ordering_key=ordering_key,
        )
        return BoundJob(self, options, tx)

    def options(self) -> JobOptions:
        """How this job waits where a call does not say otherwise."""
        return self._options

    def _new(self, options: JobOptions, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> NewJob:
        return NewJob(self.kind, self.signature.encode(args, kwargs, limit=self.payload_limit), options)

    def _new_from(self, item: Item, options: JobOptions) -> NewJob:
        match item:
            case NewJob():
                return item
            case tuple():
                return self._new(options, item, {})
            case Mapping():
                return self._new(options, (), item)
        raise ConfigurationError(
            f"enqueue_many of {self.kind} got {type(item).__name__}: not a job.",
            remedy="Give tuples of positional arguments (a single one is (x,)), dicts, or what new() made.",
        )


@dataclass(frozen=True, slots=True)
class BoundJob(Generic[P]):
    """A job with the options of one call, made by `Job.using`; it can be used many times."""

    job: Job[P, Any]
    options: JobOptions
    tx: Any = None

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Enqueued:
        """Store one job: in the transaction of ``tx``, or committed where none was given.

        With a unique key that another open transaction has just stored, waits for that transaction to end.
        Raises ArgumentError and ConnectionRefused before the database is touched, RetryTransaction where the
        database ended the transaction (REPEATABLE READ and stricter).
        """
        return send_one(self.job.database, self.new(*args, **kwargs), self.tx)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Enqueued:
        """`enqueue`, for asyncio."""
        return await asend_one(self.job.database, self.new(*args, **kwargs), self.tx)

    def enqueue_many(self, items: Iterable[Item]) -> list[Enqueued]:
        """`Job.enqueue_many`, with these options; jobs that `new` made keep their own."""
        return send_many(self.job.database, self._listed(items), self.tx)

    async def aenqueue_many(self, items: Iterable[Item]) -> list[Enqueued]:
        """`enqueue_many`, for asyncio."""
        return await asend_many(self.job.database, self._listed(items), self.tx)

    def new(self, *args: P.args, **kwargs: P.kwargs) -> NewJob:
        """A job that is checked but not stored, for ``app.enqueue_many``."""
        return self.job._new(self.options, args, kwargs)  # noqa: SLF001

    def _listed(self, items: Iterable[Item]) -> list[NewJob]:
        job, options = self.job, self.options
        listed: list[NewJob] = []
        rest = iter(items)
        while batch := list(islice(rest, _BATCH)):
            if set(map(type, batch)) == {tuple}:
                payloads = job.signature.encode_many(batch, limit=job.payload_limit)  # type: ignore[arg-type]
                listed += [NewJob(job.kind, payload, options) for payload in payloads]
            else:
                listed += [job._new_from(item, options) for item in batch]  # noqa: SLF001
        return listed
