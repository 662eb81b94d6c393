"""The ends of handlers, taken together: all that ended in one turn of the event loop at once."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from semel.queue.job import Job
from semel.queue.worker.board import Held

logger = logging.getLogger("semel.worker")

End: TypeAlias = tuple[Held, Job[..., Any], Any, BaseException | None]
"""Whose, of which job, with which result or error."""


class Ends:
    """Gathers ends, which handlers' tasks tell, and gives them to ``take`` outside of any handler's context."""

    def __init__(self, take: Callable[[Sequence[End]], object]) -> None:
        self._take = take
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._ends: list[End] = []
        self._told: deque[End] = deque()
        self._woken = False

    def note(self, held: Held, job: Job[..., Any], result: Any, error: BaseException | None) -> None:
        """Note an end. On the event loop only."""
        if held.started is not None:
            held.seconds = time.monotonic() - held.started
        held.task = None
        self._ends.append((held, job, result, error))
        if len(self._ends) == 1 and not self._loop.is_closed():
            self._loop.call_soon(self._give, context=self._context)

    def tell(self, held: Held, job: Job[..., Any], result: Any, error: BaseException | None) -> None:
        """Note an end, from any thread: the loop is woken once for all that are told until it looks."""
        self._told.append((held, job, result, error))
        if not self._woken:
            self._woken = True
            try:
                self._loop.call_soon_threadsafe(self._hear, context=self._context)
            except RuntimeError:  # the loop is closed: the worker has stopped without this attempt
                self._woken = False
                logger.warning("job %s ended after its worker had stopped", held.job.id)

    def _hear(self) -> None:
        self._woken = False  # before the look: whoever tells from now on wakes the loop again
        while self._told:
            self.note(*self._told.popleft())

    def _give(self) -> None:
        ends, self._ends = self._ends, []
        self._take(ends)
