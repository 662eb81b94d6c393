"""What the scenarios are made of: deliveries begun, paused, killed, and what is looked at afterwards."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from semel.replay.bench import Bench
from semel.replay.control import NotReached
from semel.replay.description import Description
from semel.replay.events import Do, Event, Point
from semel.replay.messages import message_of
from semel.replay.processes import Victim, state_of
from semel.replay.results import RETURNED, Expected
from semel.replay.ways.way import Sent

SHORT: Final = 5.0
"""Seconds for what need not come."""


@dataclass(frozen=True)
class Trial:
    """One check on one bench."""

    description: Description
    expected: Expected
    victim: Victim | None
    advance: Callable[[int], None]
    """Told of each round that is done."""


def cut_at(bench: Bench, trial: Trial, point: Point) -> list[int]:
    bench.workers(1)
    number = bench.new_number()
    bench.room.tell(number, point, Do.CUT)
    bench.room.expect(number)
    sent = bench.send(number, message_of(trial.description, number))
    bench.evidence.answer = answer(bench.wait(number, Point.END))
    if not bench.room.events(number, point):
        raise NotReached(f"it ended without coming to {point}")
    bench.make_old(number)
    bench.wait_begun(number, 2, sent)
    settle(bench, trial, number)
    return [number]


def paused_at(bench: Bench, trial: Trial, point: Point) -> tuple[int, Sent, Event]:
    """A delivery whose process has stopped itself at the point."""
    number = bench.new_number()
    bench.room.tell(number, point, Do.STOP)
    bench.room.expect(number)
    sent = bench.send(number, message_of(trial.description, number))
    paused = bench.wait_inside(number, point)
    wait_stopped(paused, bench.patience)
    return number, sent, paused


@contextmanager
def woken(bench: Bench, paused: Event) -> Iterator[None]:
    """Wakes the process at the end of the block, whatever happened."""
    worker = bench.crew.worker_of(paused.pid)
    try:
        yield
    finally:
        os.kill(paused.pid, signal.SIGCONT)
        worker.wake()


def wait_decided(bench: Bench, number: int, point: Point, count: int) -> None:
    """Until the other one is there, or has ended; one that waits for a lock of the paused one does when that wakes up."""
    before = len(bench.room.events(number, Point.END))

    def decided() -> bool:
        there = len(bench.room.events(number, point)) >= count
        return there or len(bench.room.events(number, Point.END)) > before

    try:
        bench.room.wait_until(decided, "what the other one decided", SHORT)
    except NotReached:
        bench.evidence.notes.append("the second delivery waited for the paused one")


def ended(bench: Bench, number: int, begun: Event) -> bool:
    """Whether the delivery that was in this process has ended there."""
    return any(each.pid == begun.pid for each in bench.room.events(number, Point.END))


def end_of(bench: Bench, number: int, begun: Event) -> Event:
    """The end of the delivery that was in this process; of any, where ends are told by another process."""
    ends = bench.room.events(number, Point.END)
    return next((each for each in ends if each.pid == begun.pid), ends[-1])


def answer(end: Event) -> str | None:
    """How a delivery ended; None where its queue does not tell."""
    error = end.detail.get("error")
    return None if error is None else error or RETURNED


def how_it_ended(end: Event) -> str | None:
    """`answer`, by the state of the task where its queue tells that alone."""
    return RETURNED if end.detail.get("state") == "SUCCESS" else answer(end)


def look_midway(bench: Bench, trial: Trial, number: int) -> None:
    if trial.expected.midway:
        record = bench.record(number)
        bench.evidence.midway = None if record is None else record.state


def begin(
    bench: Bench, trial: Trial, *, hold: Point | None = None, number: int | None = None
) -> tuple[int, Sent]:
    number = bench.new_number() if number is None else number
    bench.room.expect(number)
    if hold is not None:
        bench.room.hold(number, hold)
    return number, bench.send(number, message_of(trial.description, number))


def killed_at(bench: Bench, trial: Trial, point: Point) -> list[int]:
    assert trial.victim is not None
    number, sent = killed(bench, trial, point, trial.victim)
    bench.wait_begun(number, 2, sent, trial.victim)
    settle(bench, trial, number)
    return [number]


def killed(
    bench: Bench, trial: Trial, point: Point, victim: Victim, number: int | None = None
) -> tuple[int, Sent]:
    """Kill at the point, and have a worker there and the lease over before the next delivery.

    Where only the parent died the job's own process goes on, or notices and ends: its claim is not old before that.
    """
    bench.workers(1)
    number, sent = begin(bench, trial, hold=point, number=number)
    reached = bench.wait_inside(number, point)
    bench.kill(victim, reached)
    if bench.is_alive(reached):
        bench.wait_ended(reached)
    bench.make_old(number)
    bench.workers(1)
    return number, sent


def settle(bench: Bench, trial: Trial, number: int) -> None:
    if trial.expected.records:
        bench.wait_record(number, trial.expected.records)
    bench.wait_quiet([number], SHORT)


def wait_stopped(event: Event, patience: float) -> None:
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if state_of(event.pid) in ("T", ""):
            return
        time.sleep(0.01)
