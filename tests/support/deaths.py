"""Processes that die at one statement, as told by the environment; and that write down which statements they pass."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import msgspec
from tests.support.appending import append

from semel.store.run import Watch

DEATH = "SEMEL_TEST_DEATH"
RECORD = "SEMEL_TEST_RECORD"
"""The path that a worker's processes write to: ``.statements``, ``.children`` and ``.mark``."""


class Death(msgspec.Struct, frozen=True):
    """Who dies where: ``role`` passes ``moment`` of ``name`` for the ``turn``-th time; ``victim`` gets SIGKILL."""

    role: str
    moment: str
    name: str
    victim: str
    """``child``, ``supervisor`` or ``both``."""
    turn: int = 1

    def __str__(self) -> str:
        return f"{self.victim} killed {self.moment} {self.name} of the {self.role}, turn {self.turn}"


class Mark(msgspec.Struct, frozen=True):
    """Left by who strikes, so that each death comes once."""

    at: float
    claiming: bool
    """A claim was under way: committed, perhaps, and its answer lost."""


def make_watch(role: str) -> Watch:
    """The watch of a ``child`` or ``supervisor`` process."""
    told = os.environ.get(DEATH)
    death = msgspec.json.decode(told, type=Death) if told else None
    statements = Path(os.environ[RECORD] + ".statements")
    seen: Counter[tuple[str, str]] = Counter()
    counting = threading.Lock()

    def count(moment: str, name: str) -> int:
        """Which turn this is: threads pass statements side by side, and none may miss its own."""
        with counting:
            seen[moment, name] += 1
            return seen[moment, name]

    def watch(moment: str, name: str) -> None:
        turn = count(moment, name)
        append(statements, f"{role} {os.getpid()} {moment} {name}")
        if death is None or (role, moment, name) != (death.role, death.moment, death.name):
            return
        if turn == death.turn:
            begun = sum(seen["before", f"queue/{form}"] for form in ("claim", "claim_marked"))
            under_way = begun > seen["committed", "claim"]
            past = (moment, name) == ("committed", "claim")
            _strike(death, Mark(time.monotonic(), under_way or past))

    return watch


def mark_of(record: str) -> Mark | None:
    """What the death beside this record left, if it came."""
    path = Path(record + ".mark")
    return msgspec.json.decode(path.read_bytes(), type=Mark) if path.exists() else None


def children_of(record: str) -> list[int]:
    """The process ids of all children that began, in order."""
    path = Path(record + ".children")
    return [int(line) for line in path.read_text("utf-8").split()] if path.exists() else []


def _strike(death: Death, mark: Mark) -> None:
    path = Path(os.environ[RECORD] + ".mark")
    if path.exists():
        return
    unfinished = path.with_suffix(".part")
    unfinished.write_bytes(msgspec.json.encode(mark))
    unfinished.rename(path)
    if death.role == "child":
        victims = {"child": [os.getpid()], "supervisor": [os.getppid()], "both": [os.getppid(), os.getpid()]}
    else:
        children = children_of(os.environ[RECORD])[-1:]
        victims = {"child": children, "supervisor": [os.getpid()], "both": [*children, os.getpid()]}
    for process in victims[death.victim]:
        os.kill(process, signal.SIGKILL)
