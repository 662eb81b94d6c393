"""From what was expected and what was seen to a verdict: pure, and the same for every queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from semel.replay.events import Point
from semel.replay.results import RETURNED, Evidence, Expected, Verdict

_KILLS: Final = ("killed", "old-claim")


def judge(expected: Expected, evidence: Evidence) -> tuple[Verdict, tuple[str, ...]]:
    """The verdict, with every reason for it. A check that could not have failed is vacuous, whatever it counted.

    Vacuity is looked at after failure: an effect that happened twice did so, however it was looked at.
    """
    failed = tuple(_failures(expected, evidence))
    if failed:
        return Verdict.FAILS, failed
    empty = tuple(_vacuities(expected, evidence))
    if empty:
        return Verdict.VACUOUS, empty
    return Verdict.HOLDS, ()


def _failures(expected: Expected, evidence: Evidence) -> Iterator[str]:
    """Too many is a failure however it came to it; too few, or another end, only of a check that was done to its end."""
    effects = evidence.effects
    over = [count for count in effects if count > expected.most]
    under = [count for count in effects if count < expected.least]
    if over:
        yield f"{len(over)} of {len(effects)} operations had more than {expected.most} effects (the most: {max(over)})"
    if _was_never_hit(expected, evidence) or evidence.unfinished is not None:
        return
    if under:
        yield f"{len(under)} of {len(effects)} operations had fewer than {expected.least} effects (the least: {min(under)})"
        yield from _where_they_went(evidence)
    yield from _other_ends(expected, evidence)


def _where_they_went(evidence: Evidence) -> Iterator[str]:
    """What is known of calls that were entered, and left no effect that was counted."""
    raised = Counter(str(each.detail.get("error")) for each in evidence.events if each.point is Point.RAISED)
    for error, times in raised.most_common(1):
        yield f"the watched call raised {error} ({times} times)"
    if evidence.returns and not any(evidence.effects):
        yield (
            f"the watched call returned ({evidence.returns} times), and nothing was counted: does [count] ask for what "
            "the message leads to?"
        )


def _other_ends(expected: Expected, evidence: Evidence) -> Iterator[str]:
    records = evidence.records
    if expected.records and not _caught_it(expected, evidence):
        for state in sorted({each.state for each in records} - set(expected.records)):
            error = next((each.error for each in records if each.state == state and each.error), None)
            told = f": {error}" if error else ""
            yield f"a record ended as {state}, not as {' or '.join(expected.records)}{told}"
    if expected.records and any(each.count > 1 for each in records):
        yield "an operation has more than one record"
    if expected.midway and evidence.midway not in (None, expected.midway):
        yield f"while an attempt was inside the effect, its record was {evidence.midway}, not {expected.midway}"
    if expected.answer and evidence.answer not in (None, expected.answer):
        yield f"the delivery ended as {evidence.answer}, not as {expected.answer}"


def _caught_it(expected: Expected, evidence: Evidence) -> bool:
    """Whether the job itself caught what was raised in it, and returned: then its record is that of a job that returned."""
    return expected.check == "exception-after-effect" and evidence.answer == RETURNED


def _vacuities(expected: Expected, evidence: Evidence) -> Iterator[str]:
    check = expected.check
    if evidence.unfinished is not None:
        yield f"it was not done to its end: {evidence.unfinished}"
    if evidence.eager:
        yield "the queue runs its jobs in their callers (eager): nothing was delivered"
    if _was_never_hit(expected, evidence):
        yield "the watched call was never hit"
    if evidence.escaped:
        yield f"the watched call is also held, unwrapped, by {', '.join(evidence.escaped)}"
    if evidence.begins < 2 * max(1, len(evidence.effects)) and check != "look-alikes":
        yield f"no second delivery: {evidence.begins} began for {len(evidence.effects)} operations"
    if evidence.overlapping is not None and evidence.overlapping < expected.rounds:
        yield f"{evidence.overlapping} of {expected.rounds} rounds overlapped"
    if evidence.overlapping is not None and evidence.processes < 2:
        yield "all rounds ran in one process: a check in memory could pass for a guard"
    yield from _kill_vacuities(check, evidence)
    yield from _control_vacuities(expected, evidence)
    if expected.least == 0 and not any(evidence.effects) and not _can_end_without(expected, evidence):
        yield "no effect at all, and nothing that says why"


def _was_never_hit(expected: Expected, evidence: Evidence) -> bool:
    """Nobody came to the watched call; but for who was killed before it, under a policy that then leaves it undone."""
    if expected.most == 0 and evidence.killed_at:
        return False
    return evidence.entries == 0 and not any(evidence.effects)


def _kill_vacuities(check: str, evidence: Evidence) -> Iterator[str]:
    if not check.startswith(_KILLS):
        return
    if not evidence.killed_at:
        yield "nothing was killed: the point was never reached"
    wrong = [code for code in evidence.exits if code != -9]
    if wrong:
        yield f"the process ended by {wrong[0]}, not by the kill"


def _control_vacuities(expected: Expected, evidence: Evidence) -> Iterator[str]:
    """Two that look alike are two without the guard as well; everything else must repeat there, or act after the kill."""
    if expected.check == "look-alikes" or evidence.control_refused is not None:
        return
    if evidence.control is None:
        yield "there is no control: say how the job is delivered without its guard"
    elif evidence.control < expected.control:
        yield f"without the guard it did not repeat either ({evidence.control} effects)"


def _can_end_without(expected: Expected, evidence: Evidence) -> bool:
    """Whether a record says why there is none, or, where none can be read, the policy of who was killed before it."""
    if not expected.records:
        return expected.most == 0 and bool(evidence.killed_at)
    return bool(evidence.records)
