"""A worker inside an application: ``async with app.worker(): …``. The engine runs on the application's event loop.

Leases are extended, schedules kept and the house kept in order from a thread with an event loop and connections of its
own, so that a busy application does not lose its jobs. What a process of its own has and this has not: nothing can kill a
sync handler that ignores its time-out (its lease is no longer extended, so that others take over), and a C call that keeps
the interpreter's lock stops the thread as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Self

from semel.core.settings import Settings
from semel.queue.app import App
from semel.queue.configuration import change_settings
from semel.queue.worker.board import Board
from semel.queue.worker.engine import SLOTS, Engine, serves_for
from semel.queue.worker.leases import Leases
from semel.queue.worker.links import Connect, Link
from semel.queue.worker.messages import Numbers, SchedulePlan
from semel.queue.worker.slots import Slot, SlotTable
from semel.queue.worker.tasks import end_tasks
from semel.queue.worker.ticks import Ticks
from semel.queue.worker.upkeep import Upkeep
from semel.store.connect import connect_async
from semel.store.drivers.psycopg3 import AsyncPsycopgSession
from semel.store.migrate import check_schema, schema_state

logger = logging.getLogger("semel.worker")

_START_LIMIT: Final = 5.0
"""Seconds that entering waits for the engine; one that still looks for its database goes on by itself."""


class EmbeddedWorker:
    """Runs an application's jobs on the current event loop, between ``async with`` and its end.

    ``queues`` limits what it serves; ``schedules`` and ``upkeep`` can be left to other workers. Other options are
    settings by name. Leaving the block stops in stages, within ``stop_grace``.
    """

    def __init__(
        self,
        app: App,
        *,
        queues: Sequence[str] | None = None,
        schedules: bool = True,
        upkeep: bool = True,
        **overrides: Any,
    ) -> None:
        self.app = app
        self.settings: Settings = change_settings(app.settings, overrides)
        self.queues = queues
        self._schedules = schedules
        self._upkeep = upkeep
        self._slots: SlotTable | None = None
        self._engine: Engine | None = None
        self._running: asyncio.Task[bool] | None = None
        self._keeper: _Keeper | None = None

    @property
    def idle(self) -> bool:
        """Whether the last look found nothing to do, and nothing runs."""
        return self._engine is not None and self._engine.idle

    def _make_board(self, slots: SlotTable) -> Board:
        return Board(slots)

    def _make_engine(self, slots: SlotTable, connect: Connect) -> Engine:
        serves = serves_for(self.app, self.queues)
        return Engine(self.app, self.settings, slots, connect, serves=serves, make_board=self._make_board)

    async def __aenter__(self) -> Self:
        url = await asyncio.to_thread(lambda: self.app.url)

        async def connect() -> AsyncPsycopgSession:
            return await connect_async(
                url, self.app.catalogue, watch=self.app.database.watch, name="semel worker"
            )

        link = Link(connect, "schema check")
        try:
            check_schema(await link.run(schema_state(self.app.catalogue.schema)))
        finally:
            await link.close()
        slots = SlotTable.create(SLOTS)
        keeper = _Keeper(self.app, self.settings, slots, url, schedules=self._schedules, upkeep=self._upkeep)
        keeper.start()
        self._slots, self._keeper = slots, keeper
        self._engine = self._make_engine(slots, connect)
        self._running = asyncio.create_task(self._engine.run())
        try:
            await self._started(self._engine, self._running)
        except BaseException:
            self._engine.stop()
            self._running.cancel()
            await self._end_keeper(keeper)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._engine is not None
        assert self._running is not None
        assert self._keeper is not None
        if not self._engine.stopping:
            self._engine.stop()
        complete = False
        try:
            complete = await self._running
        finally:
            await self._end_keeper(self._keeper)
        if complete and self._slots is not None:
            self._slots.close()  # else a thread still runs a handler, and its claim stays noted

    @staticmethod
    async def _started(engine: Engine, running: asyncio.Task[bool]) -> None:
        """Wait until the engine works; raises what ended it before."""
        starting = asyncio.create_task(engine.started.wait())
        await asyncio.wait((starting, running), timeout=_START_LIMIT, return_when=asyncio.FIRST_COMPLETED)
        starting.cancel()
        if running.done():
            running.result()

    @staticmethod
    async def _end_keeper(keeper: _Keeper) -> None:
        """Extend no lease any more: that is said at once, so that a cancellation of the wait changes nothing."""
        keeper.end()
        await asyncio.to_thread(keeper.join)

    async def drain(self, *, poll: float = 0.01) -> None:
        """Wait until nothing is due and nothing runs; what was stored before this call is seen.

        Raises what ended the worker, where it does not work any more.
        """
        engine, running = self._engine, self._running
        assert engine is not None
        assert running is not None
        engine.look_now(afresh=True)
        while not engine.idle or running.done():
            if running.done():
                running.result()
                raise RuntimeError("The worker has stopped: nothing drains its queues.")
            if engine.board.empty:
                engine.look_now()
            await asyncio.sleep(poll)


class _Keeper:
    """The thread that keeps leases, schedules and the house."""

    def __init__(
        self, app: App, settings: Settings, slots: SlotTable, url: str, *, schedules: bool, upkeep: bool
    ) -> None:
        self._app = app
        self._settings = settings
        self._slots = slots
        self._url = url
        self._schedules = schedules
        self._upkeep = upkeep
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started = threading.Event()
        self._left = 0
        self._links: list[Link] = []
        self._thread = threading.Thread(target=self._run, name="semel-keeper", daemon=True)
        self._stopped: asyncio.Event | None = None

    def start(self) -> None:
        self._thread.start()
        self._started.wait()

    def end(self) -> None:
        """Tell the thread to end; does not wait."""
        if self._loop is not None and self._stopped is not None:
            with contextlib.suppress(RuntimeError):  # its loop is closed: it has ended
                self._loop.call_soon_threadsafe(self._stopped.set)

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        asyncio.run(self._keep())

    async def _keep(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        self._started.set()
        numbers = Numbers(**{name: getattr(self._settings, name) for name in Numbers.__struct_fields__})
        tables = (self._slots,)
        guarded = any(job.guarded for job in self._app.jobs.values())
        leases = Leases(
            self._link("leases"), self._settings.lease, lambda: tables, self._is_in_time, guarded=guarded
        )
        tasks = [asyncio.create_task(leases.run())]
        if self._schedules:
            plans = [SchedulePlan.of(scheduled) for scheduled in self._app.schedules.values()]
            tasks.append(asyncio.create_task(Ticks(self._link("schedules"), plans).run()))
        if self._upkeep:
            upkeep = Upkeep(self._link("upkeep"), self._app.catalogue.schema, numbers)
            tasks.append(asyncio.create_task(upkeep.run()))
        await self._stopped.wait()
        await end_tasks(tasks)
        for link in self._links:
            await link.close()

    def _is_in_time(self, slot: Slot) -> bool:
        grace = self._settings.timeout_grace.total_seconds()
        if not slot.started or slot.deadline == 0 or time.monotonic() < slot.deadline + grace:
            return True
        if slot.claim != self._left:
            self._left = slot.claim
            logger.error(
                "job %s ignores its time-out: its lease is extended no more, others may take over",
                slot.job_id,
            )
        return False

    def _link(self, name: str) -> Link:
        async def connect() -> AsyncPsycopgSession:
            return await connect_async(self._url, self._app.catalogue, name="semel keeper")

        self._links.append(Link(connect, name))
        return self._links[-1]
