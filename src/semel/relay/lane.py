"""One relayed queue at work: the worker's engine, whose jobs are messages on their way."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final
from uuid import UUID

from semel.core.settings import Settings
from semel.errors import SemelError
from semel.queue.app import App
from semel.queue.worker.board import Board
from semel.queue.worker.embedded import EmbeddedWorker
from semel.queue.worker.engine import Engine
from semel.queue.worker.links import Connect, Link
from semel.queue.worker.slots import SlotTable
from semel.queue.worker.starter import Starter
from semel.relay.figures import Figures
from semel.relay.forwarding import Forwarding
from semel.relay.in_order import InOrder
from semel.relay.route import Route
from semel.store.jobs import find_lag
from semel.store.sleep import Serves

logger = logging.getLogger("semel.relay")

NEVER: Final = 32_767
"""Crashes after which a message fails: the most that the column holds. A relay that died says nothing about its messages."""
_REPORT: Final = 10.0
"""Seconds between two lines of the log, where there was anything to do."""


class Lane(EmbeddedWorker):
    """Forwards one queue, between ``async with`` and its end. The stop is the worker's: in stages, within ``stop_grace``."""

    def __init__(self, app: App, queue: str, route: Route, *, upkeep: bool, **overrides: Any) -> None:
        super().__init__(
            app,
            queues=[queue],
            schedules=False,
            upkeep=upkeep,
            **overrides
            | {"concurrency": route.in_flight, "max_crashes": NEVER, "prefetch": 2 * route.in_flight},
        )
        self.queue = queue
        self.route = route
        self.figures = Figures()
        self._forwarding: Forwarding | None = None

    @property
    def idle(self) -> bool:
        """Whether the broker is there, the last look found nothing due, and nothing is under way."""
        return super().idle and self._forwarding is not None and not self._forwarding.paused

    @property
    def stopping(self) -> bool:
        """Whether it was told to stop, or never began."""
        return self._engine is None or self._engine.stopping

    def stop(self) -> None:
        """Begin to stop; leaving the block waits for the end."""
        if self._engine is not None:
            self._engine.stop()

    def _make_board(self, slots: SlotTable) -> Board:
        return Board(slots, relayed=True)

    def _make_engine(self, slots: SlotTable, connect: Connect) -> Engine:
        return Engine(
            self.app,
            self.settings,
            slots,
            connect,
            serves=Serves((self.queue,)),
            takes=InOrder(self.queue).takes,
            make_board=self._make_board,
            make_starter=self._make_starter,
        )

    def _make_starter(
        self, _: App, settings: Settings, board: Board, installation: UUID, __: str | None
    ) -> Starter:
        self._forwarding = Forwarding(self.route, settings, board, installation, self.figures)
        return self._forwarding

    async def report(self, link: Link) -> None:
        """Look how long the oldest waits, now and then, and log what was done; until cancelled."""
        logged = 0
        while True:
            await self.look(link)
            figures = self.figures
            if figures.sent + figures.refused > logged or figures.oldest is not None:
                logged = figures.sent + figures.refused
                logger.info(
                    "queue %s: %s", self.queue, _line(figures), extra={"queue": self.queue} | figures.report()
                )
            await asyncio.sleep(_REPORT)

    async def look(self, link: Link) -> None:
        """Look how long the oldest waits."""
        try:
            self.figures.oldest = await link.run(find_lag(self.queue))
        except SemelError as error:
            logger.warning("queue %s: its lag is not known: %s", self.queue, error.happened)


def _line(figures: Figures) -> str:
    parts = [f"sent {figures.sent}"]
    parts += [
        f"{name} {getattr(figures, name)}" for name in ("refused", "failed", "lost") if getattr(figures, name)
    ]
    parts += [f"blocked keys {len(figures.blocked)}"] if figures.blocked else []
    parts += ["nothing waits"] if figures.oldest is None else [f"the oldest waits {figures.oldest:.1f} s"]
    return ", ".join(parts)
