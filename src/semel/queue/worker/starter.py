"""What the loops of a worker need of whatever starts the claimed jobs: handlers' attempts, or what a relay forwards."""

from __future__ import annotations

from typing import Protocol

from semel.queue.worker.board import Held


class Starter(Protocol):
    """Takes jobs from the board's ``waiting`` and brings each back as an ending."""

    stopping: bool

    @property
    def concurrency(self) -> int:
        """How many may run at once, now."""
        ...

    @property
    def alone(self) -> Held | None:
        """The job that runs with no other beside it."""
        ...

    @property
    def paused(self) -> bool:
        """Nothing can start now, so that nothing is claimed."""
        ...

    def start_waiting(self) -> None:
        """Start what may start now."""
        ...

    def interrupt(self, held: Held, why: str) -> None:
        """Ask what runs to end: ``time-out``, ``stop`` or ``lost``."""
        ...

    async def close(self) -> None:
        """Let go of what starting needed; nothing starts any more."""
        ...
