"""Rounds: several processes deliver one operation at the same moment, each with its interval on the machine's one clock.

A round counts only if every process began before any had finished; the others do not show anything.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, NamedTuple

from tests.guard_crash.actors import PROCESSES, Delivery, deliver, do_effect

import semel
from semel.store.faults import LockBusy

DWELL = 0.025
AHEAD = 0.004


class Turn(NamedTuple):
    """One process in one round."""

    began: float
    answered: float
    """Its first answer."""
    finished: float
    """Its last: it delivers again until the operation is completed."""
    answers: tuple[str, ...]
    value: Any


class Rival:
    """A process that stays for all rounds."""

    def __init__(self, delivery: Delivery, *, guarded: bool = True) -> None:
        self._pipe, theirs = PROCESSES.Pipe()
        self.process = PROCESSES.Process(target=_serve, args=(delivery, guarded, theirs), daemon=True)
        self.process.start()
        theirs.close()
        assert self._pipe.recv() == "ready"

    def start(self, name: str, at: float) -> None:
        self._pipe.send((name, at))

    def finish(self) -> Turn:
        assert self._pipe.poll(60), "a rival hangs"
        turn = self._pipe.recv()
        assert isinstance(turn, Turn), turn
        return turn

    def close(self) -> None:
        self._pipe.close()
        self.process.join(10)


def play(rivals: list[Rival], name: str) -> list[Turn]:
    """One round."""
    at = time.monotonic() + AHEAD
    for rival in rivals:
        rival.start(name, at)
    return [rival.finish() for rival in rivals]


def overlap(turns: list[Turn]) -> bool:
    """Every one began before any had finished."""
    return max(turn.began for turn in turns) < min(turn.finished for turn in turns)


def _serve(delivery: Delivery, guarded: bool, pipe: Any) -> None:
    once = semel.Once(delivery.target)
    deliver_warm = replace(delivery, name=f"warm-{time.monotonic_ns()}", dwell=0.0)
    deliver(once, deliver_warm)
    pipe.send("ready")
    while True:
        try:
            name, at = pipe.recv()
        except EOFError:
            once.close()
            return
        mine = replace(delivery, name=name)
        while time.monotonic() < at:  # the barrier: all begin at one time of one clock
            pass
        pipe.send(_guarded(once, mine) if guarded else _unguarded(once, mine))


def _guarded(once: semel.Once, delivery: Delivery) -> Turn:
    began = time.monotonic()
    answers: list[str] = []
    answered = 0.0
    while True:
        answer = deliver(once, delivery)
        answered = answered or time.monotonic()
        answers.append(answer.kind)
        if answer.kind not in ("InProgress", "Busy"):
            return Turn(began, answered, time.monotonic(), tuple(answers), answer.value)
        time.sleep(0.004)


class _Plain:
    reference = "none"

    def __init__(self, connection: Any) -> None:
        self.connection = connection


def _alone(once: semel.Once, text: str) -> Any:
    """A statement in a transaction of its own, again while others have the lock (SQLite: the file)."""
    while True:
        try:
            with once.place.transaction(None) as inside:
                cursor = inside.connection.cursor()
                cursor.execute(text)
                rows = () if cursor.description is None else cursor.fetchall()
                cursor.close()
                return rows
        except LockBusy:
            continue


def _unguarded(once: semel.Once, delivery: Delivery) -> Turn:
    """The same effect behind a look whether it happened, which is what people write first."""
    began = time.monotonic()
    ((known,),) = _alone(once, f"SELECT count(*) FROM seen WHERE name = '{delivery.name}'")
    value = None
    if not known:
        value = do_effect(_Plain(None), delivery, delivery.name)
        _alone(once, f"INSERT INTO seen (name) VALUES ('{delivery.name}')")
    now = time.monotonic()
    return Turn(began, now, now, ("repeat" if known else "acted",), value)
