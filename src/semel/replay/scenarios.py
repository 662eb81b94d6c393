"""What is done in each check. Each takes a bench and answers the numbers of the operations that it was about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from semel.replay.bench import Bench
from semel.replay.control import NotReached
from semel.replay.events import Do, Point
from semel.replay.messages import changed_of, look_alike_of, message_of
from semel.replay.steps import (
    SHORT,
    Trial,
    answer,
    begin,
    cut_at,
    end_of,
    ended,
    how_it_ended,
    killed,
    killed_at,
    look_midway,
    paused_at,
    settle,
    wait_decided,
    wait_stopped,
    woken,
)

_TRIES: Final = 3
"""So many rounds are tried for each that has to overlap."""


Scenario = Callable[[Bench, Trial], list[int]]


def three_deliveries(bench: Bench, trial: Trial) -> list[int]:
    bench.workers(1)
    number, sent = begin(bench, trial)
    for count in (1, 2, 3):
        if count > 1:
            bench.again(number, sent)
        bench.wait(number, Point.BEGIN, count)
        bench.wait(number, Point.END, count)
    bench.wait_quiet([number], SHORT)
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
    bench.wait_quiet(overlapped, SHORT)
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
    number, _ = begin(bench, trial)
    bench.wait(number, Point.END)
    other = bench.new_number()
    message = look_alike_of(trial.description, number, other)
    assert message is not None
    bench.room.expect(other)
    bench.send(other, message)
    bench.wait(other, Point.END)
    bench.wait_quiet([number, other], SHORT)
    return [number, other]


def changed_payload(bench: Bench, trial: Trial) -> list[int]:
    bench.workers(1)
    number, _ = begin(bench, trial)
    bench.wait(number, Point.END)
    message = changed_of(trial.description, number)
    assert message is not None
    bench.send(number, message)
    bench.evidence.answer = answer(bench.wait(number, Point.END, 2))
    bench.wait_quiet([number], SHORT)
    return [number]


def young_claim(bench: Bench, trial: Trial) -> list[int]:
    bench.workers(2)
    number, sent = begin(bench, trial, hold=Point.ENTRY)
    bench.wait_inside(number, Point.ENTRY)
    bench.again(number, sent)
    bench.wait(number, Point.BEGIN, 2)
    try:
        bench.room.wait_for(number, Point.END, 1, SHORT)
    except NotReached:
        bench.evidence.notes.append("the second delivery waited for the first")
    look_midway(bench, trial, number)
    bench.room.release(number, Point.ENTRY)
    bench.wait(number, Point.END, 2)
    bench.wait_quiet([number], SHORT)
    return [number]


def old_claim(bench: Bench, trial: Trial) -> list[int]:
    victim = bench.way.victims[-1]
    number, sent = killed(bench, trial, Point.ENTRY, victim)
    bench.wait_begun(number, 2, sent, victim)
    for count in (3, 4):
        bench.again(number, sent)
        bench.wait(number, Point.BEGIN, count)
    settle(bench, trial, number)
    return [number]


def killed_on_entry(bench: Bench, trial: Trial) -> list[int]:
    return killed_at(bench, trial, Point.ENTRY)


def killed_on_return(bench: Bench, trial: Trial) -> list[int]:
    return killed_at(bench, trial, Point.RETURN)


def killed_past_claim(bench: Bench, trial: Trial) -> list[int]:
    return killed_at(bench, trial, Point.CLAIMED)


def killed_past_completion(bench: Bench, trial: Trial) -> list[int]:
    """Where the guard commits by itself, past that commit; else past the job's return, before the broker hears of it."""
    policy = bench.guard.policy
    return killed_at(bench, trial, Point.COMPLETED if policy.claims_apart else Point.END)


def exception_after_effect(bench: Bench, trial: Trial) -> list[int]:
    bench.workers(1)
    number = bench.new_number()
    bench.room.tell(number, Point.RETURN, Do.RAISE)
    bench.room.expect(number)
    sent = bench.send(number, message_of(trial.description, number))
    bench.evidence.answer = how_it_ended(bench.wait(number, Point.END))
    bench.make_old(number)
    bench.wait_begun(number, 2, sent)
    settle(bench, trial, number)
    return [number]


def paused_past_lease(bench: Bench, trial: Trial) -> list[int]:
    bench.workers(2)
    point = Point.CLAIMED if bench.guard.policy.claims_apart else Point.ENTRY
    number, sent, paused = paused_at(bench, trial, point)
    with woken(bench, paused):
        bench.make_old(number)
        bench.again(number, sent)
        bench.wait(number, Point.BEGIN, 2)
        wait_decided(bench, number, Point.END, 1)
    bench.wait(number, Point.END, 2)
    bench.evidence.answer = answer(end_of(bench, number, paused))
    settle(bench, trial, number)
    return [number]


def late_completion(bench: Bench, trial: Trial) -> list[int]:
    """Where another one takes over, it is kept inside the effect until the first one has had its say."""
    bench.workers(2)
    number, sent, paused = paused_at(bench, trial, Point.COMPLETING)
    with woken(bench, paused):
        bench.make_old(number)
        bench.room.hold(number, Point.ENTRY)
        bench.again(number, sent)
        bench.wait(number, Point.BEGIN, 2)
        wait_decided(bench, number, Point.ENTRY, 2)
    bench.room.wait_until(lambda: ended(bench, number, paused), "the end of who slept", bench.patience)
    bench.evidence.answer = answer(end_of(bench, number, paused))
    if len(bench.room.events(number, Point.ENTRY)) > 1:
        look_midway(bench, trial, number)
    bench.room.release(number, Point.ENTRY)
    bench.wait(number, Point.END, 2)
    settle(bench, trial, number)
    return [number]


def late_look(bench: Bench, trial: Trial) -> list[int]:
    victim = bench.way.victims[-1]
    number = bench.new_number()
    bench.room.tell(number, Point.LOOKED, Do.STOP)
    _, sent = killed(bench, trial, Point.ENTRY, victim, number)
    bench.workers(2)
    bench.wait_begun(number, 2, sent, victim)
    wait_decided(bench, number, Point.LOOKED, 1)
    looked = bench.room.events(number, Point.LOOKED)
    if not looked:
        if trial.expected.records:
            raise NotReached("nobody looked")
        bench.again(number, sent)
        bench.wait(number, Point.END, 2)
        return [number]
    wait_stopped(looked[0], bench.patience)
    with woken(bench, looked[0]):
        bench.make_old(number)
        bench.again(number, sent)
        bench.wait(number, Point.BEGIN, 3)
        wait_decided(bench, number, Point.END, 1)
    bench.wait(number, Point.END, 2)
    bench.evidence.answer = answer(end_of(bench, number, looked[0]))
    settle(bench, trial, number)
    return [number]


def lost_connection(bench: Bench, trial: Trial) -> list[int]:
    return cut_at(bench, trial, Point.COMPLETING)


def lost_answer(bench: Bench, trial: Trial) -> list[int]:
    return cut_at(bench, trial, Point.COMPLETED)


def redo(bench: Bench, trial: Trial) -> list[int]:
    """Without the guard nobody decides: the message only comes again."""
    victim = bench.way.victims[-1]
    number, sent = killed(bench, trial, Point.ENTRY, victim)
    bench.wait_begun(number, 2, sent, victim)
    bench.wait(number, Point.END)
    if trial.expected.records:
        bench.wait_record(number, ("held",))
        begun = len(bench.room.events(number, Point.BEGIN))
        sent_again = bench.redo(number)
        if not sent_again:
            bench.again(number, sent)
        bench.wait(number, Point.BEGIN, begun + 1)
    else:
        bench.again(number, sent)
        bench.wait(number, Point.END, 2)
    settle(bench, trial, number)
    return [number]


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
        "late-completion": late_completion,
        "late-look": late_look,
        "lost-connection": lost_connection,
        "lost-answer": lost_answer,
        "redo": redo,
    }
)
