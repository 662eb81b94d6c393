"""Waiting for what must come true, with a limit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

LIMIT = 60.0


def until(true: Callable[[], object], what: str, limit: float = LIMIT) -> None:
    """Return as soon as ``true()`` is; fail after ``limit`` seconds."""
    deadline = time.monotonic() + limit
    while not true():
        assert time.monotonic() < deadline, f"after {limit:.0f} s still not: {what}"
        time.sleep(0.01)


async def until_async(true: Callable[[], object], what: str, limit: float = LIMIT) -> None:
    """`until`, on an event loop; ``true`` runs in a thread."""
    deadline = time.monotonic() + limit
    while not await asyncio.to_thread(true):
        assert time.monotonic() < deadline, f"after {limit:.0f} s still not: {what}"
        await asyncio.sleep(0.02)
