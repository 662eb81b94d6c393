"""Where checks are done: workers of one kind, messages on their way to them, and what became of each operation."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter as Counter_
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from semel.replay.control import ControlRoom, NotReached
from semel.replay.counting import Counter
from semel.replay.crew import Crew
from semel.replay.description import Message
from semel.replay.events import Event, Point
from semel.replay.faults import VARIABLE
from semel.replay.guards import NoGuard, SemelGuard
from semel.replay.processes import Victim, state_of
from semel.replay.results import Evidence
from semel.replay.ways.way import Sent, Surroundings, Way

_LOOK: Final = 0.05
_UNKNOWN: Final = (
    "nobody can tell which process asked (it takes /proc): the worker was killed, and the connection cut"
)


@dataclass(frozen=True)
class Mode:
    """What is done to the guard in a bench's workers."""

    name: str
    blind: bool = False
    unconstrained: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Told:
    """What every worker's wrapper is told, but for its mode."""

    socket: Path
    journal: Path
    watch: tuple[str, ...]
    dwell: float

    def write(self, mode: Mode) -> Path:
        """The file that SEMEL_REPLAY names; beside the socket, where no other run writes."""
        path = self.socket.parent / f"replay-{mode.name}.json"
        told = {"blind": mode.blind, "unconstrained": mode.unconstrained, "watch": list(self.watch)}
        told |= {"socket": str(self.socket), "journal": str(self.journal), "dwell": self.dwell}
        path.write_text(json.dumps(told), encoding="utf-8")
        return path


class Bench:
    """Workers of one mode. Every operation has a number of its own, and a message made of it."""

    def __init__(
        self,
        way: Way,
        surroundings: Surroundings,
        mode: Mode,
        *,
        room: ControlRoom,
        counter: Counter,
        guard: NoGuard | SemelGuard,
        told: Told,
        numbers: itertools.count[int],
        patience: float,
        redelivery: float,
    ) -> None:
        self.way = way
        self.mode = mode
        self.room = room
        self.guard = guard
        self.patience = patience
        self._counter = counter
        self._numbers = numbers
        self.begun: list[int] = []
        """The operations of this check, in order."""
        self._redelivery = redelivery
        settings = told.write(mode)
        environment = {**surroundings.environment, **mode.environment, VARIABLE: str(settings)}
        self.crew = Crew(way, replace(surroundings, environment=environment))
        self._messages: dict[int, Message] = {}
        self._delivered: Counter_[int] = Counter_()
        self.evidence = Evidence()

    # operations

    def new_number(self) -> int:
        """The number of a new operation."""
        self.begun.append(next(self._numbers))
        return self.begun[-1]

    def send(self, number: int, message: Message) -> Sent:
        """Send the operation's message for the first time."""
        self._messages.setdefault(number, message)
        with self.room.sending():
            return self._sent(number, self.way.send(message, number))

    def again(self, number: int, sent: Sent) -> Sent:
        """Deliver it once more."""
        with self.room.sending():
            return self._sent(number, self.way.send_again(sent))

    def _sent(self, number: int, sent: Sent) -> Sent:
        if "deduplicated" in sent.extra:
            raise NotReached(f"the broker de-duplicated a delivery: {sent.extra['deduplicated']}")
        self.room.know(sent.delivery, number)
        self.evidence.deliveries += 1
        self._delivered[number] += 1
        return sent

    # workers

    def workers(self, count: int) -> None:
        """So many live workers, each with one job at a time, started where they are missing."""
        self.crew.fill(count)

    def kill(self, victim: Victim, event: Event) -> None:
        """SIGKILL, at the point where the process waits."""
        worker = self.crew.worker_of(event.pid)
        alone = "child" not in self.way.victims  # what the job started itself goes with it
        code = worker.kill("group" if victim == "parent" and alone else victim, event.pid)
        self.evidence.killed_at.append(f"{event.point} ({victim})")
        if event.pid <= 0:
            self.evidence.notes.append(_UNKNOWN)
        if code is not None:
            self.evidence.exits.append(code)
        self.room.release(event.operation or 0, event.point)

    def is_alive(self, event: Event) -> bool:
        """Whether the process that was there still runs."""
        return bool(state_of(event.pid))

    def wait_ended(self, event: Event) -> None:
        """Until its delivery has ended, or the process has; not longer than patience, without complaint."""
        number = event.operation or 0

        def is_over() -> bool:
            ends = self.room.events(number, Point.END)
            return any(each.pid == event.pid for each in ends) or not state_of(event.pid)

        self._wait_for(is_over)

    def stop_workers(self) -> None:
        """End those that are left."""
        self.crew.stop()

    # waiting

    def wait(self, number: int, point: Point, count: int = 1) -> Event:
        """Wait until the operation has been there so often. Raises NotReached."""
        return self.room.wait_for(number, point, count, self.patience)

    def wait_inside(self, number: int, point: Point) -> Event:
        """`wait` for a point inside the job. Raises NotReached as soon as all that was delivered has ended without it."""

        def over() -> bool:
            ended = len(self.room.events(number, Point.END))
            return bool(self.room.events(number, point)) or ended >= self._delivered[number]

        self.room.wait_until(over, f"operation {number} at {point}", self.patience)
        there = self.room.events(number, point)
        if not there:
            raise NotReached(f"its delivery ended without coming to {point}")
        return there[0]

    def wait_begun(self, number: int, count: int, sent: Sent, victim: Victim | None = None) -> None:
        """Wait until the broker has delivered again by itself, where it does; else do so as it would."""
        within = self._redelivery or (0.0 if victim is None else self.way.redelivers_within(victim))
        if within > 0:
            try:
                self.room.wait_for(number, Point.BEGIN, count, within)
                self.evidence.redelivered_by = "broker"
                return
            except NotReached:
                pass
        if len(self.room.events(number, Point.BEGIN)) < count:
            self.again(number, sent)
            self.evidence.redelivered_by = "replay"
        self.wait(number, Point.BEGIN, count)

    def wait_quiet(self, numbers: list[int], patience: float | None = None) -> None:
        """Wait until what was delivered is over and the broker has nothing; not longer than patience, without complaint."""
        end = time.monotonic() + (self.patience if patience is None else patience)
        while time.monotonic() < end:
            if all(_is_over(self.room, number) for number in numbers) and self.way.pending() == 0:
                return
            time.sleep(_LOOK)

    def wait_record(self, number: int, states: tuple[str, ...]) -> None:
        """Wait until the record is in one of these states; not longer than patience, without complaint."""
        self._wait_for(lambda: (record := self.record(number)) is not None and record.state in states)

    def _wait_for(self, true: Callable[[], bool]) -> None:
        end = time.monotonic() + self.patience
        while not true() and time.monotonic() < end:
            time.sleep(_LOOK)

    # what became of it

    def make_old(self, number: int) -> None:
        """Let the lease of a dead worker's claim be over: in semel's table, else by waiting for it. A row has none."""
        if self.guard.policy.name == "row":
            return
        if self.guard.end_lease(self._messages[number]):
            self.evidence.lease_ended = True
        elif self.guard.lease:
            time.sleep(self.guard.lease + 0.1)

    def record(self, number: int) -> Any:
        """The operation's record; None where there are none."""
        return self.guard.record(self._messages[number])

    def redo(self, number: int) -> bool:
        """A person says that the held operation is to be redone; whether its message comes again by that."""
        return self.guard.redo(self._messages[number])

    def count(self, number: int) -> int:
        """The effects of an operation, where they are counted."""
        counted: int = self._counter.count(number, self._messages[number])
        return counted

    def close_check(self, numbers: list[int], *, records: bool) -> Evidence:
        """What was seen of these operations; the bench is ready for the next check."""
        self.way.clear()
        everywhere = self.room.events()
        events = [each for each in everywhere if each.operation in set(numbers)]
        evidence = self.evidence
        _fill(evidence, events)
        evidence.escaped = sorted(
            {str(each.detail.get("name")) for each in everywhere if each.point is Point.ESCAPED}
        )
        reason = self.way.eager()
        if reason is not None:
            evidence.eager = True
            evidence.notes.append(reason)
        evidence.effects = [self.count(number) for number in numbers]
        if records:
            evidence.records = [record for number in numbers if (record := self.record(number)) is not None]
        return self.end_check()

    def end_check(self) -> Evidence:
        """What is known so far, whatever it is; the bench is ready for the next check."""
        evidence, self.evidence, self.begun = self.evidence, Evidence(), []
        evidence.logs = self.crew.logs()
        return evidence


def _is_over(room: ControlRoom, number: int) -> bool:
    """Whether every delivery that began has ended, or its process has."""
    ended = {(each.pid, each.delivery) for each in room.events(number, Point.END)}
    begun = {(each.pid, each.delivery) for each in room.events(number, Point.BEGIN)}
    return all(each in ended or not state_of(each[0]) for each in begun)


def _fill(evidence: Evidence, events: list[Event]) -> None:
    counts = {point: sum(each.point is point for each in events) for point in Point}
    evidence.begins, evidence.ends = counts[Point.BEGIN], counts[Point.END]
    evidence.entries, evidence.returns = counts[Point.ENTRY], counts[Point.RETURN]
    killed_there = sum(each.startswith(Point.ENTRY) for each in evidence.killed_at)
    evidence.maybes = max(0, evidence.entries - evidence.returns - counts[Point.RAISED] - killed_there)
    evidence.processes = len({each.pid for each in events if each.point is Point.BEGIN})
    evidence.events = events
    errors = Counter_(
        str(each.detail["error"]) for each in events if each.point is Point.END and each.detail.get("error")
    )
    if errors and not evidence.entries:
        told = ", ".join(f"{name} ({times} times)" for name, times in errors.most_common())
        evidence.notes.append(f"deliveries ended with {told}")
