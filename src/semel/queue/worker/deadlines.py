"""One timer for the time-outs of all that runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from semel.queue.worker.board import Board, Held


class Deadlines:
    """Calls ``passed`` for each running attempt whose deadline is over, once the worker has not ended it already.

    The timer stands at the earliest deadline there was when it was set; whoever ends before takes nothing back.
    """

    def __init__(self, board: Board, passed: Callable[[Held], object]) -> None:
        self._board = board
        self._passed = passed
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._next = float("inf")

    def watch(self, deadline: float) -> None:
        """Note a deadline, by the monotonic clock."""
        if deadline < self._next:
            if self._timer is not None:
                self._timer.cancel()
            self._next = deadline
            self._timer = self._loop.call_later(max(0.0, deadline - time.monotonic()), self._ring)

    def close(self) -> None:
        """Ring no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _ring(self) -> None:
        self._timer, self._next = None, float("inf")
        now = time.monotonic()
        for held in list(self._board.running.values()):
            if held.deadline is not None and held.ended_by is None:
                if held.deadline <= now:
                    self._passed(held)
                else:
                    self.watch(held.deadline)
