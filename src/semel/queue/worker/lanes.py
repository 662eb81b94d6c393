"""Which claim a child runs: from the beginning of every lane, as long as that is cheap; else from marks in lanes it knows.

Rows that others keep from being cleaned up (a snapshot that is held), or that run for long, lie in front of what is due. A
mark spares a claim from reading them; what is due before a mark all the same is found by the sweep, which moves it back.
"""

from __future__ import annotations

import random
import time
from typing import Final

from semel.core.settings import Settings
from semel.store.faults import LockBusy
from semel.store.jobs import Claims, claim
from semel.store.marks import Lane, Mark, Swept, claim_marked
from semel.store.sleep import Serves
from semel.store.statement import Operation, Steps

SLOW: Final = 0.001
"""Seconds of the server's for a sweep: from two such on, claims go from marks. As long as a claim of a few jobs takes."""

PATIENCE: Final = 6
"""Answers in a row that others are busy, after which one claims without a turn: who holds the turns may be frozen."""

_FAST: Final = 0.0005
_IN_A_ROW: Final = 2
_KEPT: Final = 64
"""Lanes that are looked into though nothing was due in them."""

_REMEMBERED: Final = 10.0
"""Seconds that a lane beyond those is still looked into."""


class Lanes:
    """The lanes of one child, and how far it has come in each."""

    def __init__(self, serves: Serves, slow: float = SLOW) -> None:
        self.serves = serves
        self.marked = False
        """Whether claims go from marks: then no answer does not mean that nothing is due."""
        self.busy = 0
        """Answers in a row that others are busy."""
        self._slow = slow
        self._marks: dict[Lane, Mark] = {}
        self._due_at: dict[Lane, float] = {}
        self._against = 0

    @property
    def undecided(self) -> bool:
        """The last sweep spoke against the kind of claim that is run now: the next one decides."""
        return self._against > 0

    def take(self, worker: int, limit: int, settings: Settings) -> Operation[Claims]:
        """The claim to run."""
        lease, most = settings.lease, settings.max_crashes
        turn, waiting = (self.serves.turn if self.busy < PATIENCE else None), self.busy > 0
        if self.marked:
            marks = self._in_turn()
            return self._following(
                claim_marked(
                    marks,
                    worker=worker,
                    limit=limit,
                    lease=lease,
                    max_crashes=most,
                    turn=turn,
                    waiting=waiting,
                )
            )
        queues, without = self.serves.queues, self.serves.without
        return self._following(
            claim(
                worker=worker,
                limit=limit,
                lease=lease,
                max_crashes=most,
                queues=queues,
                without=without,
                turn=turn,
                waiting=waiting,
            )
        )

    def learn(self, swept: Swept) -> None:
        """Choose the kind of claim by how long a sweep took, and move marks back to what it found."""
        against = swept.seconds < min(_FAST, self._slow) if self.marked else swept.seconds > self._slow
        self._against = self._against + 1 if against else 0
        if self._against == _IN_A_ROW:
            self.marked, self._against = not self.marked, 0
            self._marks.clear()
            self._due_at.clear()
        if self.marked:
            self._move(swept)
            self._forget(swept)

    def _following(self, operation: Operation[Claims]) -> Operation[Claims]:
        """The same, and what it came to is noted: whether others were busy, and how far the marks are."""

        def steps() -> Steps[Claims]:
            try:
                found = yield from operation.steps()
            except LockBusy:  # it has waited for a turn
                found = Claims((), (), busy=True)
            self.busy = self.busy + 1 if found.busy else 0
            if self.marked:
                self._advance(found)
            return found

        return Operation(operation.name, steps, alone=operation.alone)

    def _advance(self, found: Claims) -> None:
        for job in (*found.taken, *found.ended):
            lane, mark = Lane(job.queue, job.priority), Mark(job.run_at, job.id)
            if self._marks.get(lane, mark).is_before(mark):
                self._marks[lane] = mark

    def _in_turn(self) -> dict[Lane, Mark]:
        """Higher priorities first; lanes of one priority take turns by chance."""
        lanes = list(self._marks.items())
        random.shuffle(lanes)
        lanes.sort(key=lambda each: each[0].priority, reverse=True)
        return dict(lanes)

    def _move(self, swept: Swept) -> None:
        """To what the sweep saw, back or on: nothing else was due before it."""
        now = time.monotonic()
        self._due_at |= dict.fromkeys(swept.due, now)
        self._marks = dict.fromkeys((*self._marks, *swept.waiting), swept.asked) | dict(swept.due)

    def _forget(self, swept: Swept) -> None:
        """Many lanes with nothing in them would be the cost that marks are to spare."""
        oldest = time.monotonic() - _REMEMBERED
        for lane in list(self._marks):
            if len(self._marks) <= _KEPT:
                return
            if lane not in swept.due and self._due_at.get(lane, oldest) <= oldest:
                del self._marks[lane]
                self._due_at.pop(lane, None)
