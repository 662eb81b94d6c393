"""A relay: which queues go where."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from types import MappingProxyType
from typing import Any, Final

from semel.core.job import check_name
from semel.errors import ConfigurationError
from semel.queue.app import App
from semel.queue.configuration import change_settings
from semel.queue.worker.links import Link
from semel.queue.worker.tasks import end_tasks
from semel.relay.figures import Figures
from semel.relay.lane import Lane
from semel.relay.route import Route, to_route
from semel.relay.target import Target
from semel.store.connect import connect_async
from semel.store.drivers.psycopg3 import AsyncPsycopgSession

DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType({"lease": "30 s"})
"""What a relay has otherwise than a worker: it holds each job for moments only."""


class Relay:
    """Forwards named queues of an application to other brokers, each to its own.

    ``overrides`` are settings by name, such as ``lease``. Workers of the application leave these queues alone from here on.
    """

    def __init__(self, app: App, routes: Mapping[str, Route | Target], **overrides: Any) -> None:
        if not routes:
            raise ConfigurationError(
                "The relay has no queues.", remedy='Relay(app, {"billing": ToCelery(celery)})'
            )
        self.app = app
        self.routes = MappingProxyType(
            {check_name(queue, name="queue"): to_route(queue, given) for queue, given in routes.items()}
        )
        self._overrides = dict(DEFAULTS) | overrides
        change_settings(app.settings, self._overrides)
        app.leave_to_relay(self.routes)

    def of(self, queues: Iterable[str] | None, **overrides: Any) -> Relay:
        """The same relay, for some of its queues only (None: for all)."""
        chosen = tuple(self.routes) if queues is None else tuple(queues)
        unknown = [queue for queue in chosen if queue not in self.routes]
        if unknown:
            raise ConfigurationError(
                f"The relay has no queue {unknown[0]!r}.", remedy=f"It has: {', '.join(self.routes)}."
            )
        routes = {queue: self.routes[queue] for queue in chosen}
        return Relay(self.app, routes, **self._overrides | overrides)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Running]:
        """Forward on the current event loop until the end of the block, which stops in stages."""
        lanes = [
            Lane(self.app, queue, route, upkeep=place == 0, **self._overrides)
            for place, (queue, route) in enumerate(self.routes.items())
        ]
        link = Link(self._connect, "relay")
        async with AsyncExitStack() as stack:
            stack.push_async_callback(link.close)
            try:
                for lane in lanes:
                    await stack.enter_async_context(lane)
                reports = [asyncio.create_task(lane.report(link)) for lane in lanes]
                stack.push_async_callback(end_tasks, reports)
                yield Running(lanes, link)
            finally:
                for lane in lanes:  # all at once: each waits for its own end when it is left
                    if not lane.stopping:
                        lane.stop()

    async def _connect(self) -> AsyncPsycopgSession:
        url = await asyncio.to_thread(lambda: self.app.url)
        return await connect_async(url, self.app.catalogue, watch=self.app.database.watch, name="semel relay")


class Running:
    """A relay at work."""

    def __init__(self, lanes: list[Lane], link: Link) -> None:
        self._lanes = lanes
        self._link = link

    @property
    def figures(self) -> dict[str, Figures]:
        """What was done since the start, by queue."""
        return {lane.queue: lane.figures for lane in self._lanes}

    @property
    def idle(self) -> bool:
        """Whether every broker is there, and nothing is due or under way."""
        return all(lane.idle for lane in self._lanes)

    async def drain(self) -> None:
        """Wait until nothing is due; what was stored before this call is sent."""
        for lane in self._lanes:
            await lane.drain()

    async def look(self) -> None:
        """Look how long the oldest of each queue waits."""
        for lane in self._lanes:
            await lane.look(self._link)

    def stop(self) -> None:
        """Begin to stop: take no more, let what is under way end. Twice: give it back at once."""
        for lane in self._lanes:
            lane.stop()
