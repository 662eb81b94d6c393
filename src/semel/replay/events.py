"""What workers say about where they are. Written to the journal by the worker itself, before it asks what to do there."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec


class Point(StrEnum):
    """A place in the life of a delivery."""

    BEGIN = "begin"
    """A delivery reached the worker's code."""
    CLAIMED = "claimed"
    """Past the commit of the guard's claim."""
    LOOKED = "looked"
    """The guard's look-up has answered; what it said is not written yet."""
    ENTRY = "entry"
    """The watched call is entered; nothing of it has happened."""
    RETURN = "return"
    """The watched call returned; its effect has happened."""
    RAISED = "raised"
    """The watched call raised; nobody knows."""
    COMPLETING = "completing"
    """The guard is about to write the completion."""
    COMPLETED = "completed"
    """Past the commit of the completion."""
    END = "end"
    """The delivery is over: returned, raised, or deleted."""
    ESCAPED = "escaped"
    """Somebody holds the watched call from before it was wrapped."""
    HIT = "hit"
    """The wrapper is in place in this process."""
    EAGER = "eager"
    """The queue runs its jobs in their callers."""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the journal."""

    point: Point
    pid: int
    at: float
    """CLOCK_MONOTONIC, which all processes of a machine share."""
    thread: int = 0
    delivery: str = ""
    """The broker's id of the message; empty where the point does not know."""
    operation: int | None = None
    """The operation's number; filled in by who knows the ids."""
    digest: str = ""
    """Of the watched call's arguments."""
    detail: dict[str, Any] = msgspec.field(default_factory=dict)


class Do(StrEnum):
    """What a worker is told to do at a point."""

    GO = "go"
    KILL = "kill"
    """SIGKILL to itself."""
    STOP = "stop"
    """SIGSTOP to itself; goes on when somebody wakes it."""
    RAISE = "raise"
    """Raise an exception there."""
    CUT = "cut"
    """As if the database's connection were lost there."""
