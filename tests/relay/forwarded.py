"""A relay on the test's own event loop, and small questions about what became of its jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.support.stored import ask
from tests.support.waiting import until_async

import semel
from semel.core.retry import Backoff, RetryPolicy, Rule
from semel.errors import MessageUnfit
from semel.relay import Figures, Relay, Route, Running, Target

QUICK = RetryPolicy(
    max_attempts=3, backoff=Backoff(base="10 ms", cap="20 ms"), rules=(Rule(MessageUnfit, "fail"),)
)
"""Tried again at once."""


def make_app(url: str) -> semel.App:
    """An application with two relayed kinds."""
    app = semel.App(url)

    @app.job(queue="out", relayed=True)
    def note(number: int, key: str | None = None) -> None: ...

    @app.job(queue="out", relayed=True, max_attempts=3)
    def unknown(number: int, key: str | None = None) -> None: ...

    return app


@asynccontextmanager
async def relaying(app: semel.App, target: Target, **route: Any) -> AsyncIterator[Running]:
    """Forward the queue ``out``."""
    relay = Relay(app, {"out": Route(target, **route)}, lease="5 s", poll="20 ms")
    async with relay.running() as running:
        yield running


async def drained(app: semel.App, target: Target, **route: Any) -> Figures:
    """Forward all that is due; what was done."""
    async with relaying(app, target, **route) as running:
        async with asyncio.timeout(60):
            await running.drain()
    return running.figures["out"]


async def comes_true(true: Callable[[], object], what: str) -> None:
    await until_async(true, what)


def jobs(url: str, queue: str = "out") -> list[tuple[Any, ...]]:
    """(id, kind, status, attempts, last_error), the oldest first."""
    return ask(
        url,
        "SELECT id, kind, status, attempts, last_error FROM semel.all_jobs WHERE queue = %s ORDER BY id",
        queue,
    )
