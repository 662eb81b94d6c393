"""A relay as a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from typing import Any

from semel.relay.figures import Figures
from semel.relay.relay import Relay

logger = logging.getLogger("semel.relay")


def run_relay(relay: Relay, *, drain: bool = False, **overrides: Any) -> dict[str, Figures]:
    """Forward until SIGTERM or SIGINT, or until nothing is due; answers what was done, by queue."""
    return asyncio.run(_run(relay.of(None, **overrides), drain=drain))


async def _run(relay: Relay, *, drain: bool) -> dict[str, Figures]:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with relay.running() as running:

        def signalled() -> None:
            stopping.set()
            running.stop()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, signalled)
        logger.info("relay started: queues %s", ", ".join(relay.routes))
        waits: list[asyncio.Task[Any]] = [asyncio.create_task(stopping.wait())]
        if drain:
            waits.append(asyncio.create_task(running.drain()))
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await wait
        await running.look()
    logger.info("relay stopped")
    return running.figures
