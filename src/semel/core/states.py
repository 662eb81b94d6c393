"""The states of a job and every move between them. A trigger in the database refuses the rest."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Status(StrEnum):
    """Where a job is. Due, delayed and waiting to retry are all ``pending``; ``run_at`` tells them apart."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    """The dead letter: it gave up, and stays until a person or its retention ends it."""
    CANCELLED = "cancelled"
    HELD = "held"
    """Waiting for a person, because the effect is uncertain."""


class Verb(StrEnum):
    """Why a job moves. What a person does has verbs of its own."""

    CLAIM = "claim"
    RESCUE = "rescue"
    """A new claim on a running job whose lease ran out."""
    COMPLETE = "complete"
    RETRY = "retry"
    SNOOZE = "snooze"
    GIVE_BACK = "give back"
    FAIL = "fail"
    CANCEL = "cancel"
    HOLD = "hold"
    REQUEUE = "requeue"
    """A person, or a foreign program, runs an ended job again."""
    RESOLVE = "resolve"
    """A person, or a foreign program, says that it is done."""


LIVE: Final = frozenset({Status.PENDING, Status.RUNNING})
"""The states that a claim looks at; the generated column ``live``."""

MOVES: Final[Mapping[tuple[Status, Status], tuple[Verb, ...]]] = MappingProxyType(
    {
        (Status.PENDING, Status.RUNNING): (Verb.CLAIM,),
        (Status.PENDING, Status.DONE): (Verb.RESOLVE,),
        (Status.PENDING, Status.CANCELLED): (Verb.CANCEL,),
        (Status.RUNNING, Status.PENDING): (Verb.RETRY, Verb.SNOOZE, Verb.GIVE_BACK),
        (Status.RUNNING, Status.RUNNING): (Verb.RESCUE,),
        (Status.RUNNING, Status.DONE): (Verb.COMPLETE,),
        (Status.RUNNING, Status.FAILED): (Verb.FAIL,),
        (Status.RUNNING, Status.CANCELLED): (Verb.CANCEL,),
        (Status.RUNNING, Status.HELD): (Verb.HOLD,),
        (Status.FAILED, Status.PENDING): (Verb.REQUEUE,),
        (Status.FAILED, Status.DONE): (Verb.RESOLVE,),
        (Status.FAILED, Status.CANCELLED): (Verb.CANCEL,),
        (Status.HELD, Status.PENDING): (Verb.REQUEUE,),
        (Status.HELD, Status.DONE): (Verb.RESOLVE,),
        (Status.HELD, Status.CANCELLED): (Verb.CANCEL,),
        (Status.CANCELLED, Status.PENDING): (Verb.REQUEUE,),
        (Status.DONE, Status.PENDING): (Verb.REQUEUE,),
    }
)
"""From and to, with the verbs that make the move. Any state to itself is allowed too, and changes nothing."""


def allowed(old: Status, new: Status) -> bool:
    """Whether a job may move so; the same rule as the trigger's."""
    return old == new or (old, new) in MOVES
