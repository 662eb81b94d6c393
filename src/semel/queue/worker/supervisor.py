"""The supervisor of a worker: it keeps its children running and their leases extended, and loads no application itself."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Sequence

from semel.core.retry import Backoff
from semel.errors import DatabaseUnreachable, SchemaMismatch, SemelError
from semel.queue.worker.child import ChildOptions
from semel.queue.worker.children import COMMAND, Child
from semel.queue.worker.leases import Leases
from semel.queue.worker.links import Link
from semel.queue.worker.logs import configure_logging
from semel.queue.worker.messages import Broken, Hello
from semel.queue.worker.nursery import Nursery
from semel.queue.worker.options import WorkerOptions
from semel.queue.worker.remains import give_back_remains
from semel.queue.worker.tasks import end_tasks
from semel.queue.worker.ticks import Ticks
from semel.queue.worker.upkeep import Upkeep
from semel.sql import Catalogue
from semel.store.connect import connect_async
from semel.store.drivers.psycopg3 import AsyncPsycopgSession
from semel.store.migrate import check_schema, schema_state
from semel.store.run import Watch

logger = logging.getLogger("semel.worker")

_CONNECT_LIMIT = 15.0
_BURIAL_LIMIT = 5.0


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
        self._stopping = asyncio.Event()
        self._nursery: Nursery | None = None

    async def run(self) -> int:
        """Start, supervise until a signal, stop; answers the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled)
        first = await Child.start(self._child_options(), self.command)
        hello = await self._first_hello(first)
        refused = await self._refuse(hello)
        if refused is not None or not isinstance(hello, Hello):
            await first.discard()
            return refused or 0
        logger.info(
            "worker started: children %s, kinds of job %s, schedules %s",
            self.options.children,
            hello.kinds,
            len(hello.schedules),
        )
        await self._supervise(first, hello)
        logger.info("worker stopped")
        return 0

    async def _supervise(self, first: Child, hello: Hello) -> None:
        numbers = hello.numbers

        async def bury(child: Child, wanted: bool) -> None:
            await give_back_remains(self._link(hello, "give back"), child, stopped=wanted, backoff=Backoff())

        nursery = Nursery(self._child_options(), numbers.stop_grace, bury, self.command)
        self._nursery = nursery
        tasks = [
            asyncio.create_task(work)
            for work in (
                Leases(
                    self._link(hello, "leases"), numbers.lease, lambda: nursery.tables, guarded=hello.guarded
                ).run(),
                Ticks(self._link(hello, "schedules"), hello.schedules).run(),
                Upkeep(self._link(hello, "upkeep"), hello.schema, numbers).run(),
                nursery.end_overdue(numbers.timeout_grace),
                self._stop_when_drained(nursery),
            )
        ]
        places = [
            asyncio.create_task(nursery.keep(first if place == 0 else None))
            for place in range(self.options.children)
        ]
        await self._stopping.wait()
        await nursery.stop()
        await asyncio.gather(*places)
        await nursery.buried(_BURIAL_LIMIT)
        await end_tasks(tasks)

    async def _stop_when_drained(self, nursery: Nursery) -> None:
        while self.options.drain and not self._stopping.is_set():
            await asyncio.sleep(0.05)
            children = nursery.children
            if len(children) == self.options.children and all(child.idle for child in children):
                logger.info("nothing is due: stopping")
                self._stopping.set()

    def _signalled(self) -> None:
        if not self._stopping.is_set():
            logger.info("stopping: nothing more is claimed, what runs may end; a second signal hurries")
        elif self._nursery is not None:
            logger.info("hurrying: what runs is interrupted")
            self._nursery.hurry()
        self._stopping.set()

    async def _first_hello(self, child: Child) -> Hello | Broken | None:
        """The first child's word, or None where a signal came before it."""
        hearing = asyncio.ensure_future(child.hello())
        stopping = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait([hearing, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not hearing.done():
            hearing.cancel()
            return None
        return hearing.result() or Broken("The first child died while it loaded the application.")

    async def _refuse(self, word: Hello | Broken | None) -> int | None:
        """The exit code of a worker that cannot start, said in the log; None where nothing speaks against it."""
        if isinstance(word, Broken):
            logger.error("%s", word.message)
            return word.exit_code
        try:
            if word is not None:
                await self._check_schema(word)
        except SemelError as error:
            logger.error("%s", error)
            return _exit_code(error)
        return None

    async def _check_schema(self, hello: Hello) -> None:
        link = self._link(hello, "schema check")
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

    def _link(self, hello: Hello, name: str) -> Link:
        return Link(Connector(hello.url, Catalogue(hello.schema), self.watch), name)

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
            drain=options.drain,
            channel=-1,
            slots=-1,
            capacity=0,
        )


class Connector:
    """Opens a supervisor's connections."""

    def __init__(self, url: str, catalogue: Catalogue, watch: Watch | None) -> None:
        self.url = url
        self.catalogue = catalogue
        self.watch = watch

    async def __call__(self) -> AsyncPsycopgSession:
        return await connect_async(self.url, self.catalogue, watch=self.watch, name="semel supervisor")


def _exit_code(error: SemelError) -> int:
    if isinstance(error, DatabaseUnreachable):
        return 3
    return 1 if isinstance(error, SchemaMismatch) else 2
