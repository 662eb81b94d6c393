"""A child process: it loads the application, says what it found, and works until its supervisor says stop, or is gone."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import importlib
import logging
import os
import signal
import socket
import sys
from datetime import timedelta
from typing import Any, Final

import msgspec

from semel.core.settings import Settings
from semel.errors import ConfigurationError, DatabaseUnreachable, EmbeddedServerError, SemelError
from semel.queue.app import App
from semel.queue.worker.engine import Engine, serves_for
from semel.queue.worker.logs import configure_logging
from semel.queue.worker.messages import Broken, Channel, Go, Hello, Idle, Numbers, SchedulePlan, Stop
from semel.queue.worker.slots import SlotTable
from semel.queue.worker.tasks import end_tasks
from semel.store.connect import connect_async
from semel.store.drivers.psycopg3 import AsyncPsycopgSession
from semel.store.run import Watch

logger = logging.getLogger("semel.worker")

_IDLE_LOOK = 0.05

_THRESHOLD: Final = (700, 10, 10)
"""The interpreter's, where nobody has set another."""

_SELDOM: Final = (10_000, 20, 20)


class ChildOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a supervisor tells its child on the command line, as JSON."""

    application: str
    database: str | None = None
    schema: str | None = None
    queues: tuple[str, ...] | None = None
    overrides: dict[str, float] = {}
    """Settings by name; durations in seconds."""
    log_format: str = "text"
    log_level: str = "INFO"
    drain: bool = False
    """The supervisor stops once nothing is due, and wants to be told."""
    channel: int
    slots: int
    capacity: int


def main(arguments: list[str] | None = None, watch: Watch | None = None) -> int:
    """Run a child; ``watch`` sees every statement (tests kill the process there)."""
    options = msgspec.json.decode((arguments or sys.argv[1:])[0], type=ChildOptions)
    configure_logging(options.log_format, options.log_level)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    code = asyncio.run(_Child(options, watch).run())
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)  # a thread that still runs a handler must not hold up the end


class _Child:
    def __init__(self, options: ChildOptions, watch: Watch | None) -> None:
        self.options = options
        self.watch = watch
        self.slots = SlotTable(options.slots, options.capacity)
        self.engine: Engine | None = None

    async def run(self) -> int:
        channel = await Channel.open(socket.socket(fileno=self.options.channel))
        try:
            app = load_application(self.options.application, self.options.database, self.options.schema)
            app.database.watch = self.watch
            settings = override(app.settings, self.options.overrides)
            url = await asyncio.to_thread(lambda: app.url)
        except Exception as error:
            channel.send(_broken(error))
            await channel.drain()
            return 2
        channel.send(_hello(app, url, settings))
        if not isinstance(await channel.receive(Go | Stop), Go):
            return 0
        return await self._work(app, url, settings, channel)

    async def _work(self, app: App, url: str, settings: Settings, channel: Channel) -> int:
        async def connect() -> AsyncPsycopgSession:
            return await connect_async(url, app.catalogue, watch=self.watch, name="semel worker")

        engine = Engine(
            app,
            settings,
            self.slots,
            connect,
            serves=serves_for(app, self.options.queues),
            location=self.options.application,
        )
        collect_seldom()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, engine.stop)
        beside = [asyncio.create_task(_listen(channel, engine, settings.lease))]
        if self.options.drain:
            beside.append(asyncio.create_task(_tell_idle(channel, engine)))
        complete = await engine.run()
        await end_tasks(beside)
        logger.info("stopped: %s", dataclasses.asdict(engine.board.counts))
        return 0 if complete else 3


async def _listen(channel: Channel, engine: Engine, lease: timedelta) -> None:
    """Do what the supervisor says. Without one nobody extends the leases: what runs may end within half of one."""
    while True:
        match await channel.receive(Go | Stop):
            case Stop(grace=grace):
                engine.stop(grace)
            case None:
                logger.warning("the supervisor is gone: stopping within half a lease")
                engine.stop(lease.total_seconds() / 2)
                return


async def _tell_idle(channel: Channel, engine: Engine) -> None:
    told = False
    while True:
        await asyncio.sleep(_IDLE_LOOK)
        if engine.idle != told:
            told = engine.idle
            channel.send(Idle(told))


def collect_seldom() -> None:
    """Let the cycle collector leave alone what is loaded, and look less often, unless the application has set it itself.

    An attempt that returns leaves no cycle behind: its objects go by their reference counts.
    """
    gc.collect()
    gc.freeze()
    if gc.get_threshold() == _THRESHOLD:
        gc.set_threshold(*_SELDOM)


def load_application(location: str, database: str | None, schema: str | None) -> App:
    """The application at ``module:attribute``; over another database or schema where given."""
    module, _, attribute = location.partition(":")
    if not module or not attribute:
        raise ConfigurationError(
            f"{location!r} does not name an application.",
            remedy="Write module:attribute, as in shop.jobs:app",
        )
    if "" not in sys.path and str(os.getcwd()) not in sys.path:  # noqa: PTH109
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the application is there; what it imports is not
        raise ConfigurationError(
            f"There is no module {error.name!r} to load {location!r} from.",
            remedy="Start in the project's folder, or install it.",
        ) from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise ConfigurationError(f"{module} has no {attribute!r}.", remedy="Name the App object in it.")
        found = getattr(found, name)
    if not isinstance(found, App):
        raise ConfigurationError(f"{location} is {type(found).__name__}, not a semel.App.")
    if schema is not None and schema != found.catalogue.schema:
        raise ConfigurationError(
            f"{location} keeps its jobs in the schema {found.catalogue.schema!r}, not {schema!r}.",
            remedy="Set it where the App is made: App(schema=…).",
        )
    if database is not None:
        found.point_to(database)
    return found


def override(settings: Settings, overrides: dict[str, float]) -> Settings:
    """``settings`` with some numbers replaced; durations are given in seconds."""
    changes: dict[str, Any] = {}
    for name, value in overrides.items():
        is_duration = isinstance(getattr(settings, name), timedelta)
        changes[name] = timedelta(seconds=value) if is_duration else int(value)
    return dataclasses.replace(settings, **changes)


def _hello(app: App, url: str, settings: Settings) -> Hello:
    numbers = Numbers(**{field: getattr(settings, field) for field in Numbers.__struct_fields__})
    return Hello(
        url=url,
        schema=app.catalogue.schema,
        numbers=numbers,
        schedules=tuple(SchedulePlan.of(scheduled) for scheduled in app.schedules.values()),
        kinds=len(app.jobs),
        guarded=any(job.guarded for job in app.jobs.values()),
    )


def _broken(error: Exception) -> Broken:
    if isinstance(error, SemelError):
        unreachable = isinstance(error, DatabaseUnreachable | EmbeddedServerError)
        return Broken(error.happened, error.holds, error.remedy, error.code, 3 if unreachable else 2)
    logger.error("the application cannot be loaded", exc_info=error)
    return Broken(f"The application cannot be loaded: {type(error).__name__}: {error}", code="application")


if __name__ == "__main__":
    sys.exit(main())
