"""An application: its jobs and schedules, its settings, and the database they are in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    Self,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

from semel.core.durations import Duration
from semel.core.job import Enqueued, NewJob, check_name
from semel.core.settings import Settings
from semel.queue.configuration import Address, change_settings
from semel.queue.declaration import JobDeclaration, declare
from semel.queue.job import Job
from semel.queue.recurring import Missed, ScheduledJob
from semel.queue.registry import Plan, Registry
from semel.queue.sending import asend_many, send_many
from semel.sql import Catalogue
from semel.store.pools import Database

if TYPE_CHECKING:
    from semel.queue.context import JobContext
    from semel.queue.worker.embedded import EmbeddedWorker

P = ParamSpec("P")
R = TypeVar("R")
Function = TypeVar("Function", bound=Callable[..., Any])


class SettingsOverrides(TypedDict, total=False):
    """Fields of `Settings` by name, with durations as people write them."""

    lease: Duration
    timeout: Duration
    timeout_grace: Duration
    max_attempts: int
    max_crashes: int
    concurrency: int
    stop_grace: Duration
    poll: Duration
    quiet_poll: Duration
    keep_done: Duration
    keep_failed: Duration
    keep_ticks: Duration
    keep_events: Duration
    keep_operations: Duration
    keep_released: Duration
    payload_limit: int
    flush_delay: Duration
    flush_size: int
    prefetch: int


class App:
    """Declares jobs with ``@app.job`` and enqueues them. Nothing is connected to before it is needed.

    ``database`` is a PostgreSQL URL; without one it is ``SEMEL_DATABASE_URL``, else the embedded server, for
    development. Close it with ``close()``, or use it as a context manager.
    """

    def __init__(
        self,
        database: str | None = None,
        *,
        schema: str = "semel",
        settings: Settings | None = None,
        **overrides: Unpack[SettingsOverrides],
    ) -> None:
        self.settings = change_settings(settings or Settings(), overrides)
        self.catalogue = Catalogue(schema)
        self._address = Address(database, schema)
        self.database = Database(self._address.resolve, self.catalogue)
        self._registry = Registry()
        self._relayed: set[str] = set()

    @property
    def url(self) -> str:
        """The database's URL. With none given, starts the embedded server, and migrates it."""
        return self._address.resolve()

    def point_to(self, url: str) -> None:
        """Use this database instead, from the next connection on; for processes that are told where it is."""
        self._address.point_to(url)

    @property
    def jobs(self) -> Mapping[str, Job[..., Any]]:
        """Every declared job by its kind; read-only."""
        return self._registry.jobs

    @property
    def schedules(self) -> Mapping[str, ScheduledJob]:
        """Every declared schedule by its name; read-only."""
        return self._registry.schedules

    @property
    def relayed(self) -> frozenset[str]:
        """The queues that a relay forwards, and no worker of this application serves."""
        declared = {job.queue for job in self.jobs.values() if job.relayed}
        return frozenset(declared | self._relayed)

    def leave_to_relay(self, queues: Iterable[str]) -> None:
        """Let workers of this application leave these queues to a relay; a `Relay` says it by itself."""
        self._relayed.update(check_name(queue, name="queue") for queue in queues)

    @overload
    def job(self, function: Callable[P, R], /) -> Job[P, R]: ...
    @overload
    def job(
        self,
        function: None = None,
        /,
        *,
        context: Literal[True],
        transaction: Literal[True],
        **options: Unpack[JobDeclaration],
    ) -> Callable[[Callable[Concatenate[JobContext, Any, P], R]], Job[P, R]]: ...
    @overload
    def job(
        self, function: None = None, /, *, context: Literal[True], **options: Unpack[JobDeclaration]
    ) -> Callable[[Callable[Concatenate[JobContext, P], R]], Job[P, R]]: ...
    @overload
    def job(
        self, function: None = None, /, *, transaction: Literal[True], **options: Unpack[JobDeclaration]
    ) -> Callable[[Callable[Concatenate[Any, P], R]], Job[P, R]]: ...
    @overload
    def job(
        self, function: None = None, /, **options: Unpack[JobDeclaration]
    ) -> Callable[[Callable[P, R]], Job[P, R]]: ...
    def job(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        context: bool = False,
        transaction: bool = False,
        **options: Unpack[JobDeclaration],
    ) -> Any:
        """Declare a function as the handler of a kind of job; it stays callable.

        ``context=True`` passes the attempt's `JobContext` first. ``transaction=True`` passes a connection
        (after the context) whose commit includes the job's completion: what the handler writes on it happens
        once.
        """

        def register(handler: Callable[..., Any]) -> Job[..., Any]:
            job = declare(
                handler,
                options,
                context=context,
                transaction=transaction,
                settings=self.settings,
                database=self.database,
            )
            self._registry.add(job)
            return job

        return register if function is None else register(function)

    def schedule(
        self,
        expression: str | None = None,
        *,
        every: Duration | None = None,
        tz: str = "UTC",
        name: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        missed: Missed = "last",
    ) -> Callable[[Function], Function]:
        """Run a job at the ticks of a cron expression in the zone ``tz``, or of an interval; stack it with
        ``@app.job``.

        Several on one job need names. A schedule keeps its past under its name: renaming it starts anew.
        """
        plan = Plan(expression, every, tz, name, arguments, missed)

        def register(target: Function) -> Function:
            if isinstance(target, Job):
                self._registry.add_schedule(target, plan)
            else:
                self._registry.wait(target, plan)
            return target

        return register

    def enqueue_many(self, jobs: Iterable[NewJob], *, tx: Any = None) -> list[Enqueued]:
        """Store jobs of any kinds, made with ``new(…)``: all or none, answered in their order."""
        return send_many(self.database, list(jobs), tx)

    async def aenqueue_many(self, jobs: Iterable[NewJob], *, tx: Any = None) -> list[Enqueued]:
        """`enqueue_many`, for asyncio."""
        return await asend_many(self.database, list(jobs), tx)

    def worker(self, **options: Any) -> EmbeddedWorker:
        """A worker inside this application: ``async with app.worker(): …``."""
        from semel.queue.worker.embedded import EmbeddedWorker

        return EmbeddedWorker(self, **options)

    def with_database(self, url: str, **overrides: Unpack[SettingsOverrides]) -> App:
        """The same jobs over another database, for tests. Enqueue through its ``jobs``:
        ``copy.jobs["charge"]``."""
        copy = App(url, schema=self.catalogue.schema, settings=self.settings, **overrides)
        copy._registry = self._registry.rebound(copy.database, copy.settings.payload_limit)
        copy._relayed = set(self._relayed)
        return copy

    def close(self) -> None:
        """Close the connections that enqueuing opened."""
        self.database.close()

    async def aclose(self) -> None:
        """`close`, and the connections of this event loop."""
        await self.database.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.aclose()
