"""Ends loops that run as tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

_AGAIN: Final = 0.2


async def end_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait for their end; again where one goes on.

    One cancellation is not enough: ``asyncio.wait_for``, through which the driver waits, loses it in Python 3.11 where the
    answer comes in the same moment (python/cpython#86296).
    """
    all_tasks = list(tasks)
    pending = {task for task in all_tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=_AGAIN)
    await asyncio.gather(*all_tasks, return_exceptions=True)
