"""What is done in each check. Each takes a bench and answers the numbers of the operations that it was about."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from semel.replay.bench import Bench
from semel.replay.control import NotReached
from semel.replay.description import Description
from semel.replay.events import Do, Event, Point
from semel.replay.messages import changed_of, look_alike_of, message_of
from semel.replay.processes import Victim
from semel.replay.results import Expected
from semel.replay.ways.way import Sent

_TRIES: Final = 3
"""So many rounds are tried for each that has to overlap."""
_SHORT: Final = 5.0


@dataclass(frozen=True)
class Trial:
    """One check on one bench."""

    description: Description
    expected: Expected
    victim: Victim | None
    advance: Callable[[int], None]
    """Told of each round that is done."""


Scenario = Callable[[Bench, Trial], list[int]]


def three_deliveries(bench: Bench, trial: Trial) -> list[int]:
    bench.workers(1)
    number, sent = _begin(bench, trial)
    for count in (1, 2, 3):
        if count > 1:
            bench.again(number, sent)
        bench.wait(number, Point.BEGIN, count)
        bench.wait(number, Point.END, count)
    bench.wait_quiet([number], _SHORT)
    return [number]


def two_at_once(bench: Bench, trial: Trial) -> list[int]:
    """Rounds that did not overlap, or met in one process, are told of and not counted."""
    bench.workers(2)
    wanted = trial.expected.rounds
    overlapped: list[int] = []
    others: list[int] = []
    for tried in range(wanted * _TRIES):
        number = _round(bench, trial)
        (overlapped if _overlapped(bench, number) else others).append(number)
        trial.advance(len(overlapped))
        if len(overlapped) == wanted or (not overlapped and tried + 1 == _TRIES):
            break
    bench.wait_quiet(overlapped, _SHORT)
    bench.evidence.overlapping = len(overlapped)
    if others:
        bench.evidence.notes.append(
            f"{len(others)} more rounds did not overlap in two processes, and do not count"
        )
    return overlapped or others


def _round(bench: Bench, trial: Trial) -> int:
    number = bench.new_number()
    bench.room.expect(number)
    bench.room.meet(number, Point.BEGIN, 2)
    sent = bench.send(number, message_of(trial.description, number))
    bench.again(number, sent)
    try:
        bench.wait(number, Point.BEGIN, 2)
    except NotReached:
        bench.room.part(number, Point.BEGIN)
    bench.room.part(number, Point.BEGIN)
    try:
        bench.wait(number, Point.END, 2)
    except NotReached as error:
        bench.evidence.notes.append(str(error))
    return number


def _overlapped(bench: Bench, number: int) -> bool:
    """Whether two of its deliveries, in different processes, both began before either ended."""
    begins = bench.room.events(number, Point.BEGIN)[:2]
    ends = bench.room.events(number, Point.END)
    if len(begins) < 2 or begins[0].pid == begins[1].pid:
        return False
    return not ends or min(each.at for each in ends) > max(each.at for each in begins)


def look_alikes(bench: Bench, trial: Trial) -> list[int]:
    bench.workers(1)
    number, _ = _begin(bench, trial)
    bench.wait(number, Point.END)
    other = bench.new_number()
    message = look_alike_of(trial.description, number, other)
    assert message is not None
    bench.room.expect(other)
    bench.send(other, message)
    bench.wait(other, Point.END)
    bench.wait_quiet([number, other], _SHORT)
    return [number, other]


def changed_payload(bench: Bench, trial: Trial) -> list[int]:
    bench.workers(1)
    number, _ = _begin(bench, trial)
    bench.wait(number, Point.END)
    message = changed_of(trial.description, number)
    assert message is not None
    bench.send(number, message)
    bench.wait(number, Point.END, 2)
    bench.wait_quiet([number], _SHORT)
    return [number]


def young_claim(bench: Bench, trial: Trial) -> list[int]:
    bench.workers(2)
    number, sent = _begin(bench, trial, hold=Point.ENTRY)
    bench.wait(number, Point.ENTRY)
    bench.again(number, sent)
    bench.wait(number, Point.BEGIN, 2)
    try:
        bench.room.wait_for(number, Point.END, 1, _SHORT)
    except NotReached:
        bench.evidence.notes.append("the second delivery waited for the first")
    bench.room.release(number, Point.ENTRY)
    bench.wait(number, Point.END, 2)
    bench.wait_quiet([number], _SHORT)
    return [number]


def old_claim(bench: Bench, trial: Trial) -> list[int]:
    number, sent = _killed(bench, trial, Point.ENTRY, bench.way.victims[-1])
    for count in (2, 3, 4):
        bench.again(number, sent)
        bench.wait(number, Point.BEGIN, count)
    _settle(bench, trial, number)
    return [number]


def killed_on_entry(bench: Bench, trial: Trial) -> list[int]:
    return _killed_at(bench, trial, Point.ENTRY)


def killed_on_return(bench: Bench, trial: Trial) -> list[int]:
    return _killed_at(bench, trial, Point.RETURN)


def killed_past_claim(bench: Bench, trial: Trial) -> list[int]:
    return _killed_at(bench, trial, Point.CLAIMED)


def killed_past_completion(bench: Bench, trial: Trial) -> list[int]:
    """Where the guard commits by itself, past that commit; else past the job's return, before the broker hears of it."""
    policy = bench.guard.policy
    return _killed_at(
        bench, trial, Point.COMPLETED if policy.recorded and policy.name != "row" else Point.END
    )


def exception_after_effect(bench: Bench, trial: Trial) -> list[int]:
    bench.workers(1)
    number = bench.new_number()
    bench.room.tell(number, Point.RETURN, Do.RAISE)
    bench.room.expect(number)
    sent = bench.send(number, message_of(trial.description, number))
    bench.wait(number, Point.END)
    bench.make_old(number)
    bench.wait_begun(number, 2, sent)
    _settle(bench, trial, number)
    return [number]


def paused_past_lease(bench: Bench, trial: Trial) -> list[int]:
    bench.workers(2)
    policy = bench.guard.policy
    point = Point.CLAIMED if policy.recorded and policy.name != "row" else Point.ENTRY
    number = bench.new_number()
    bench.room.tell(number, point, Do.STOP)
    bench.room.expect(number)
    sent = bench.send(number, message_of(trial.description, number))
    paused = bench.wait(number, point)
    _wait_stopped(paused, bench.patience)
    worker = bench.worker_of(paused.pid)
    try:
        bench.make_old(number)
        bench.again(number, sent)
        bench.wait(number, Point.BEGIN, 2)
        _wait_second(bench, number)
    finally:
        os.kill(paused.pid, signal.SIGCONT)
        worker.wake()
    bench.wait(number, Point.END, 2)
    _settle(bench, trial, number)
    return [number]


def _wait_second(bench: Bench, number: int) -> None:
    """Until the other one has decided; one that waits for a lock of the paused one decides when that wakes up."""
    try:
        bench.room.wait_for(number, Point.END, 1, _SHORT)
    except NotReached:
        bench.evidence.notes.append("the second delivery waited for the paused one")


def lost_connection(bench: Bench, trial: Trial) -> list[int]:
    bench.workers(1)
    number = bench.new_number()
    bench.room.tell(number, Point.COMPLETING, Do.CUT)
    bench.room.expect(number)
    sent = bench.send(number, message_of(trial.description, number))
    bench.wait(number, Point.END)
    bench.make_old(number)
    bench.wait_begun(number, 2, sent)
    _settle(bench, trial, number)
    return [number]


def _begin(bench: Bench, trial: Trial, *, hold: Point | None = None) -> tuple[int, Sent]:
    number = bench.new_number()
    bench.room.expect(number)
    if hold is not None:
        bench.room.hold(number, hold)
    return number, bench.send(number, message_of(trial.description, number))


def _killed_at(bench: Bench, trial: Trial, point: Point) -> list[int]:
    assert trial.victim is not None
    number, sent = _killed(bench, trial, point, trial.victim)
    bench.wait_begun(number, 2, sent, trial.victim)
    _settle(bench, trial, number)
    return [number]


def _killed(bench: Bench, trial: Trial, point: Point, victim: Victim) -> tuple[int, Sent]:
    """Kill at the point, and have a worker there and the lease over before the next delivery.

    Where only the parent died the job's own process goes on, or notices and ends: its claim is not old before that.
    """
    bench.workers(1)
    number, sent = _begin(bench, trial, hold=point)
    reached = bench.wait(number, point)
    bench.kill(victim, reached)
    if bench.is_alive(reached):
        bench.wait_ended(reached)
    bench.make_old(number)
    bench.workers(1)
    return number, sent


def _settle(bench: Bench, trial: Trial, number: int) -> None:
    if trial.expected.records:
        bench.wait_record(number, trial.expected.records)
    bench.wait_quiet([number], _SHORT)


def _wait_stopped(event: Event, patience: float) -> None:
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if (
            Path(f"/proc/{event.pid}/stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()[0]
            == "T"
        ):
            return
        time.sleep(0.01)


SCENARIOS: Final[Mapping[str, Scenario]] = MappingProxyType(
    {
        "three-deliveries": three_deliveries,
        "two-at-once": two_at_once,
        "look-alikes": look_alikes,
        "changed-payload": changed_payload,
        "young-claim": young_claim,
        "old-claim": old_claim,
        "killed-on-entry": killed_on_entry,
        "killed-on-return": killed_on_return,
        "killed-past-claim": killed_past_claim,
        "killed-past-completion": killed_past_completion,
        "exception-after-effect": exception_after_effect,
        "paused-past-lease": paused_past_lease,
        "lost-connection": lost_connection,
    }
)
