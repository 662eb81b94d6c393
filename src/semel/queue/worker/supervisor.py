"""The supervisor of a worker: it keeps its children running and their leases extended, and loads no application itself."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import Awaitable, Iterator, Sequence
from datetime import timedelta

from semel.core.retry import Backoff
from semel.errors import ConfigurationError, DatabaseUnreachable, SchemaMismatch, SemelError
from semel.queue.worker.child import ChildOptions
from semel.queue.worker.children import COMMAND, Child
from semel.queue.worker.leases import Leases, overdue
from semel.queue.worker.links import Link
from semel.queue.worker.logs import configure_logging
from semel.queue.worker.messages import Broken, Hello
from semel.queue.worker.options import WorkerOptions
from semel.queue.worker.remains import give_back_remains
from semel.queue.worker.slots import SlotTable
from semel.queue.worker.ticks import Ticks
from semel.queue.worker.upkeep import Upkeep
from semel.sql import Catalogue
from semel.store.connect import connect_async
from semel.store.drivers.psycopg3 import AsyncPsycopgSession
from semel.store.migrate import check_schema, schema_state
from semel.store.run import Watch

logger = logging.getLogger("semel.worker")

_CONNECT_LIMIT = 15.0
_SHORT_LIFE = 5.0
_LONGEST_PAUSE = 30.0


def run_supervisor(
    options: WorkerOptions, command: Sequence[str] = COMMAND, watch: Watch | None = None
) -> int:
    """Run a worker until it is told to stop; answers the exit code. ``watch`` sees its own statements.

    SIGTERM or SIGINT stops in stages within the grace; a second one cancels what runs at once, a third one kills.
    """
    configure_logging(options.log_format, options.log_level)
    return asyncio.run(Supervisor(options, command, watch).run())


class Supervisor:
    """Several children, their leases, schedules and house-keeping."""

    def __init__(
        self, options: WorkerOptions, command: Sequence[str] = COMMAND, watch: Watch | None = None
    ) -> None:
        self.options = options
        self.watch = watch
        self.command = tuple(command)
        self.children: set[Child] = set()
        self._stopping = asyncio.Event()
        self._signals = 0
        self._hello: Hello | None = None
        self._short_lives = 0
        self._background: set[asyncio.Task[None]] = set()

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled)
        first = await Child.start(self._child_options(), self.command)
        try:
            hello = await self._first_hello(first)
            if hello is None:
                await self._discard(first)
                return 0
            await self._check_schema(hello)
        except SemelError as error:
            logger.error("%s", error)
            await self._discard(first)
            return 3 if isinstance(error, DatabaseUnreachable) else _exit_code(error)
        self._hello = hello
        logger.info(
            "worker started: %s children, %s kinds of job, %s schedules",
            self.options.children,
            hello.kinds,
            len(hello.schedules),
        )
        await self._supervise(first, hello)
        return 0

    async def _supervise(self, first: Child, hello: Hello) -> None:
        tasks = [
            asyncio.create_task(Leases(self._link("leases"), hello.numbers.lease, self._tables).run()),
            asyncio.create_task(self._end_overdue(hello.numbers.timeout_grace)),
            asyncio.create_task(Ticks(self._link("schedules"), hello.schedules).run()),
            asyncio.create_task(Upkeep(self._link("upkeep"), hello.schema, hello.numbers).run()),
            asyncio.create_task(self._stop_when_drained()),
        ]
        keepers = [
            asyncio.create_task(self._keep(first if place == 0 else None))
            for place in range(self.options.children)
        ]
        await self._stopping.wait()
        await self._stop_children(hello.numbers.stop_grace)
        await asyncio.gather(*keepers)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.gather(*self._background)
        logger.info("worker stopped")

    async def _keep(self, child: Child | None) -> None:
        """Keep one place filled: start a child, wait for its end, give back what it held, start the next."""
        while not self._stopping.is_set() or child is not None:
            if child is None:
                child = await self._start_child()
            if child is not None:
                await self._attend(child)
                child = None
            if not self._stopping.is_set():
                await self._pause()

    async def _start_child(self) -> Child | None:
        child = await Child.start(self._child_options(), self.command)
        self.children.add(child)
        hello = await child.hello()
        if isinstance(hello, Hello):
            return child
        if not self._stopping.is_set():
            logger.error("a child cannot start: %s", hello.message if hello is not None else "it died")
        self.children.discard(child)
        await self._discard(child)
        self._short_lives += 1
        return None

    async def _discard(self, child: Child) -> None:
        """End a child that holds nothing."""
        child.kill()
        await child.process.wait()
        child.close()

    async def _attend(self, child: Child) -> None:
        self.children.add(child)
        child.go()
        if self._stopping.is_set():
            child.stop(self._grace().total_seconds())
        listening = asyncio.create_task(child.listen())
        code = await child.process.wait()
        listening.cancel()
        self.children.discard(child)
        expected = self._stopping.is_set() or code == 0
        logger.log(
            logging.INFO if expected else logging.ERROR,
            "child %s ended with code %s",
            child.process.pid,
            code,
        )
        lived = time.monotonic() - child.born
        self._short_lives = 0 if lived > _SHORT_LIFE or code == 0 else self._short_lives + 1
        self._in_background(
            give_back_remains(self._link("give back"), child, stopped=expected, backoff=Backoff())
        )

    async def _pause(self) -> None:
        """Children that die young are started ever more slowly."""
        if self._short_lives > 1:
            pause = min(0.1 * 2**self._short_lives, _LONGEST_PAUSE)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopping.wait()

    async def _stop_children(self, grace: timedelta) -> None:
        deadline = time.monotonic() + grace.total_seconds()
        for child in self.children:
            child.stop(grace.total_seconds())
        while self.children and time.monotonic() < deadline and self._signals < 3:
            await asyncio.sleep(0.02)
        for child in list(self.children):
            logger.warning("child %s did not end within the grace: killed", child.process.pid)
            child.kill()

    async def _end_overdue(self, grace: timedelta) -> None:
        """Kill a child whose handler has ignored its time-out and the grace after it."""
        while True:
            await asyncio.sleep(min(0.5, max(0.02, grace.total_seconds() / 5)))
            for child in list(self.children):
                late = overdue([child.slots], grace)
                if late:
                    child.blamed |= {(claimed.slot.job_id, claimed.slot.claim) for claimed in late}
                    jobs = ", ".join(str(claimed.slot.job_id) for claimed in late)
                    logger.error("child %s is killed: job %s ignores its time-out", child.process.pid, jobs)
                    child.kill()

    async def _stop_when_drained(self) -> None:
        while self.options.drain and not self._stopping.is_set():
            await asyncio.sleep(0.05)
            if len(self.children) == self.options.children and all(child.idle for child in self.children):
                logger.info("nothing is due: stopping")
                self._stopping.set()

    def _signalled(self) -> None:
        self._signals += 1
        if self._signals == 1:
            self._stopping.set()
        else:
            for child in self.children:
                child.stop(self._grace().total_seconds())

    async def _first_hello(self, child: Child) -> Hello | None:
        """The first child's word, or None where a signal came before it."""
        hearing = asyncio.ensure_future(child.hello())
        stopping = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait([hearing, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not hearing.done():
            hearing.cancel()
            return None
        match hearing.result():
            case Hello() as hello:
                return hello
            case Broken(message=message, unreachable=True):
                raise DatabaseUnreachable(message)
            case Broken(message=message):
                raise ConfigurationError(message)
        raise ConfigurationError("The first child died while it loaded the application.")

    async def _check_schema(self, hello: Hello) -> None:
        link = Link(self._connect_to(hello), "schema check")
        try:
            async with asyncio.timeout(_CONNECT_LIMIT):
                state, _ = await link.insist(schema_state(hello.schema))
        except TimeoutError as error:
            raise DatabaseUnreachable(
                "The database cannot be reached.", remedy="Check the URL and that the server runs."
            ) from error
        finally:
            await link.close()
        check_schema(state)

    def _link(self, name: str) -> Link:
        assert self._hello is not None
        return Link(self._connect_to(self._hello), name)

    def _connect_to(self, hello: Hello) -> Connector:
        return Connector(hello.url, Catalogue(hello.schema), self.watch)

    def _child_options(self) -> ChildOptions:
        options = self.options
        overrides = {
            "concurrency": options.concurrency,
            "lease": None if options.lease is None else options.lease.total_seconds(),
            "stop_grace": None if options.stop_grace is None else options.stop_grace.total_seconds(),
        }
        return ChildOptions(
            application=options.app,
            database=options.database,
            schema=options.schema,
            queues=options.queues,
            overrides={name: value for name, value in overrides.items() if value is not None},
            log_format=options.log_format,
            log_level=options.log_level,
            channel=-1,
            slots=-1,
            capacity=0,
        )

    def _grace(self) -> timedelta:
        assert self._hello is not None
        return self._hello.numbers.stop_grace

    def _tables(self) -> Iterator[SlotTable]:
        return (child.slots for child in self.children)

    def _in_background(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


class Connector:
    """Opens a supervisor's connections."""

    def __init__(self, url: str, catalogue: Catalogue, watch: Watch | None) -> None:
        self.url = url
        self.catalogue = catalogue
        self.watch = watch

    async def __call__(self) -> AsyncPsycopgSession:
        return await connect_async(self.url, self.catalogue, watch=self.watch, name="semel supervisor")


def _exit_code(error: SemelError) -> int:
    return 1 if isinstance(error, SchemaMismatch) else 2
