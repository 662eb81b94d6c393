"""Turns of those who claim the same queues: so many claims at once, and the others wait."""

from __future__ import annotations

import random
from typing import Final

from semel.store.statement import Operation, Statement, Steps

TURNS: Final = 4
"""Claims for the same queues that run at once: two processors stay busy while some of them commit."""


def wait_for_turn(turn: str) -> Operation[None]:
    """Wait until one of those who claim the same is through; raises `LockBusy` where that takes half a second.

    It leaves no lock behind. Somebody else may be faster to the turn that has become free.
    """

    def steps() -> Steps[None]:
        place = random.randint(1, TURNS)  # noqa: S311 - spreads those that wait
        yield Statement("queue/wait_for_turn", {"turn": turn, "place": place})

    return Operation("wait_for_turn", steps, alone=True)
