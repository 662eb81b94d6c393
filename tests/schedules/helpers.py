"""Replicas without the rest of a worker: what keeps its schedules, over a connection of its own."""

from __future__ import annotations

from typing import Any

import msgspec

from semel import App
from semel.queue.worker.links import Link
from semel.queue.worker.messages import SchedulePlan
from semel.queue.worker.ticks import Ticks
from semel.sql import Catalogue
from semel.store.connect import connect_async
from semel.store.drivers.psycopg3 import AsyncPsycopgSession


def plan(**changes: Any) -> SchedulePlan:
    """A schedule of each second, or with some of it changed."""
    app = App("postgresql://nowhere")

    @app.schedule(every="1 s", name="beat", arguments={"order": 7})
    @app.job(queue="beats", priority=3, max_attempts=2)
    async def beat(order: int) -> None: ...

    return msgspec.structs.replace(SchedulePlan.of(app.schedules["beat"]), **changes)


def ticks_over(url: str, *plans: SchedulePlan) -> Ticks:
    """What keeps the schedules of one replica."""

    async def connect() -> AsyncPsycopgSession:
        return await connect_async(url, Catalogue())

    return Ticks(Link(connect, "schedules"), plans or (plan(),))
