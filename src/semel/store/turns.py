"""Turns of those who claim the same queues: so many claims at once, and the others wait."""

from __future__ import annotations

import dataclasses
import random
from typing import Final

from semel.store.statement import Statement

TURNS: Final = 4
"""Claims for the same queues that run at once: two processors stay busy while some of them commit."""


def take_turns(claim: Statement, turn: str | None, *, waiting: bool) -> Statement:
    """The claim as one that needs a turn of those who claim ``turn``; None: that needs none.

    Where there is none it answers that it was not its turn; or, ``waiting``, it waits for one, half a second at most, after
    which it raises `LockBusy`. What is due is then what was due when it began to wait.
    """
    literals = {**claim.literals, "turns": str(TURNS)}
    if turn is None or not waiting:
        return dataclasses.replace(claim, parameters={**claim.parameters, "turn": turn}, literals=literals)
    place = random.randint(1, TURNS)  # noqa: S311 - spreads those that wait
    parameters = {**claim.parameters, "turn": None, "awaited": turn, "place": place}
    return dataclasses.replace(claim, parameters=parameters, literals=literals, first="queue/wait_for_turn")
