"""An event loop for a sync caller's asynchronous work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from semel.errors import ConfigurationError
from semel.queue.app import App

Answer = TypeVar("Answer")


def run_in_loop(app: App, what: str, work: Callable[[], Awaitable[Answer]]) -> Answer:
    """Do the work on a loop of its own; what the application connected there is closed with it.

    Raises ConfigurationError where a loop runs in this thread already: a sync call would block it.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_follow(app, work))
    raise ConfigurationError(
        f"{what} needs an event loop, and this thread's runs already: a sync call would block it.",
        remedy="Use the asyncio form: await adrain(…), await arun_inline(…), await ….aenqueue(…).",
    )


async def _follow(app: App, work: Callable[[], Awaitable[Answer]]) -> Answer:
    try:
        return await work()
    finally:
        await app.database.aclose()
