"""The record of one business operation: its states, and the table of moves that the guard makes.

`begin` and the functions after it are that table: from what the record says, read in one statement together with the
database's clock, to the move to write and the answer to give. They decide; the store writes each move fenced by what was
read, and decides again where it came too late.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from semel.core.durations import to_timedelta
from semel.core.effects import (
    AcceptDuplicate,
    AcceptMiss,
    Answer,
    Effect,
    Hold,
    Lookup,
    ProviderKey,
    Row,
)


class State(StrEnum):
    """Where an operation stands."""

    CLAIMED = "claimed"
    RELEASED = "released"
    """Known not to have happened; the next delivery acts."""
    COMPLETED = "completed"
    HELD = "held"
    """Waits for a person: nobody can tell whether the effect happened."""


class Outcome(StrEnum):
    """How a completed operation came to its end."""

    ACTED = "acted"
    FOUND = "found"
    MISSED = "missed"
    BY_PERSON = "by_person"
    ABANDONED = "abandoned"


class Move(StrEnum):
    """What is written. Each is one statement, fenced by the revision that was read or by the attempt's own token."""

    NOTHING = "nothing"
    INSERT = "insert"
    RENEW = "renew"
    """My own claim again: its acknowledgement was lost."""
    CLAIM = "claim"
    """A released operation is claimed anew."""
    TAKE_OVER = "take_over"
    TAKE_OVER_TO_LOOK = "take_over_to_look"
    HOLD = "hold"
    MISS = "miss"
    COMPLETE = "complete"
    COMPLETE_FOUND = "complete_found"
    ACT = "act"
    """The fenced step after a look-up said NOT_DONE, and the point of no return."""
    LOOK_LATER = "look_later"
    RELEASE = "release"
    UNCERTAIN = "uncertain"
    EXTEND = "extend"


class Reply(StrEnum):
    """What the caller is told."""

    ACT = "act"
    LOOK = "look"
    REPEAT = "repeat"
    ABANDONED = "abandoned"
    MISMATCH = "mismatch"
    HELD = "held"
    IN_PROGRESS = "in_progress"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How often a claim may end without an answer before a person is asked."""

    max_unsure: int = 3
    max_takeovers: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """An operation as one statement read it. Times are seconds relative to the database's now at that read."""

    state: State
    outcome: Outcome | None = None
    revision: int
    """Rises with every write: what a move is fenced by."""
    claim: int
    mine: bool
    """Its token is that of the attempt that asks."""
    same_payload: bool
    lease_left: float
    """Until the lease ends; negative when it has."""
    acting: bool
    """The point of no return was passed by some claim, and nobody has shown since that nothing happened."""
    unsure_for: float | None = None
    """Since the end of the last claim that may have acted, where that is not this lease's end."""
    reference: str
    generation: int = 1
    reference_age: float
    """Since the reference was given."""
    unsure: int = 0
    takeovers: int = 0
    looks: int = 0
    """Look-ups begun since the last that said NOT_DONE; counted when they begin, as one may kill its worker."""
    extra_used: int = 0
    committed_midway: bool = False
    """The claim of a `Row()` that another transaction can see: its handler committed halfway."""
    result: Any = None
    result_dropped: bool = False
    last_error: str | None = None
    message_kept: bool = False
    """Whether the record says how to send the message again."""

    @property
    def stale(self) -> bool:
        """Claimed, and past its lease."""
        return self.state is State.CLAIMED and self.lease_left <= 0

    @property
    def since_last_chance(self) -> float:
        """Seconds since the end of the last claim that may have acted; settle times count from it."""
        return self.unsure_for if self.unsure_for is not None else -self.lease_left


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The move to write, the answer to give, and the word for the record's history (None: no event)."""

    move: Move
    reply: Reply
    event: str | None = None
    reason: str = ""
    wait: timedelta | None = None
    """For IN_PROGRESS: until it is worth asking again."""
    new_reference: bool = False
    use_extra: bool = False


def begin(
    record: Record | None,
    effect: Effect,
    *,
    longest_run: timedelta,
    limits: Limits,
    payload_known: bool = True,
) -> Decision:
    """The answer to a delivery. The order of the checks is binding: each entry of the table in its place."""
    if record is None:
        return Decision(move=Move.INSERT, reply=Reply.ACT)
    in_time = not leaves_doubt(record, Move.RENEW) or may_resend(record, effect, longest_run=longest_run)
    if record.mine and record.state is State.CLAIMED and in_time:
        return Decision(move=Move.RENEW, reply=Reply.LOOK if _was_to_look(record, effect) else Reply.ACT)
    mismatch = payload_known and not record.same_payload
    if record.state is State.RELEASED:
        return Decision(
            move=Move.CLAIM,
            reply=Reply.ACT,
            event="payload_changed" if mismatch else None,
            new_reference=mismatch,
        )
    if mismatch:
        return Decision(
            move=Move.NOTHING, reply=Reply.MISMATCH, event="refused", reason="the payload is another one"
        )
    if record.state is State.COMPLETED:
        abandoned = record.outcome is Outcome.ABANDONED
        return Decision(move=Move.NOTHING, reply=Reply.ABANDONED if abandoned else Reply.REPEAT)
    if record.state is State.HELD:
        return Decision(
            move=Move.NOTHING, reply=Reply.HELD, event="refused", reason="it is held for a person"
        )
    if not record.stale:
        return _in_progress(record.lease_left, "another attempt holds its lease")
    return _stale(record, effect, longest_run, limits)


def found(effect: Lookup, record: Record, answer: Answer) -> Decision:
    """What a look-up's answer leads to; the attempt that looked holds the claim."""
    if answer is Answer.DONE:
        return Decision(move=Move.COMPLETE_FOUND, reply=Reply.REPEAT, event="looked", reason="found done")
    if answer is Answer.NOT_DONE:
        return Decision(
            move=Move.ACT, reply=Reply.ACT, event="looked", reason="found not done", new_reference=True
        )
    if record.looks >= effect.looks:
        return _hold(f"{record.looks} look-ups could not tell")
    return Decision(
        move=Move.LOOK_LATER,
        reply=Reply.IN_PROGRESS,
        event="looked",
        reason="the look-up could not tell",
        wait=effect.wait_before(record.looks),
    )


def failed(*, acting: bool, not_done: bool, in_doubt: bool = False) -> Move:
    """What an exception in the handler leads to: before the point of no return, or where it certainly did not happen,
    the claim is released; else nobody knows.

    An attempt that took over one `in_doubt` knows of its own call at most: the earlier effect may still have happened.
    """
    released = (not_done or not acting) and not in_doubt
    return Move.RELEASE if released else Move.UNCERTAIN


def leaves_doubt(record: Record, move: Move) -> bool:
    """Whether an attempt that begins by this move cannot tell what an attempt before it did."""
    if move is Move.TAKE_OVER:
        return record.acting
    return move is Move.RENEW and record.acting and record.takeovers > 0


def _was_to_look(record: Record, effect: Effect) -> bool:
    """Whether my claim, whose acknowledgement was lost, was one to look first: acting needs the look-up's NOT_DONE."""
    can_look = isinstance(effect, Lookup) or (
        isinstance(effect, ProviderKey) and isinstance(effect.then, Lookup)
    )
    return can_look and record.unsure_for is not None


def _stale(record: Record, effect: Effect, longest_run: timedelta, limits: Limits) -> Decision:
    if record.committed_midway:
        return _hold("its handler committed midway")
    if record.unsure >= limits.max_unsure:
        return _hold(f"{record.unsure} attempts ended without anybody knowing")
    if record.takeovers >= limits.max_takeovers:
        return _hold(f"it was taken over {record.takeovers} times")
    if not record.acting:
        return _take_over("nothing can have happened")
    match effect:
        case Row() | Hold():
            return _hold(_how_it_ended(record))
        case ProviderKey(then=then):
            if _within_window(record, effect, longest_run):
                return _take_over("sent again with the same reference")
            return (
                _hold("the provider's key may be forgotten")
                if isinstance(then, Hold)
                else _look(record, then)
            )
        case AcceptDuplicate(extra=extra):
            if record.extra_used < extra:
                return _take_over("a second effect is accepted", use_extra=True)
            return _hold(f"{extra} further attempts are used up")
        case AcceptMiss():
            return Decision(move=Move.MISS, reply=Reply.REPEAT, event="missed", reason="a miss is accepted")
        case Lookup():
            return _look(record, effect)


def _how_it_ended(record: Record) -> str:
    """A claim past its point of no return: with an error, which its end noted, or with its worker."""
    if record.unsure and record.unsure_for is not None and record.last_error:
        return f"its handler raised after the point of no return: {record.last_error.splitlines()[0][:200]}"
    return "its worker ended after the point of no return"


def _look(record: Record, lookup: Lookup) -> Decision:
    if record.looks >= lookup.looks:
        return _hold(f"{record.looks} look-ups gave no answer")
    left = to_timedelta(lookup.settle, name="settle").total_seconds() - record.since_last_chance
    if left > 0:
        return _in_progress(left, "too early to ask")
    return Decision(move=Move.TAKE_OVER_TO_LOOK, reply=Reply.LOOK, event="takeover", reason="ask first")


def _within_window(record: Record, effect: ProviderKey, longest_run: timedelta) -> bool:
    """Surely: a run that starts now ends before the provider forgets."""
    window = effect.window.total_seconds()
    return record.reference_age + longest_run.total_seconds() < window


def may_resend(record: Record, effect: Effect, *, longest_run: timedelta) -> bool:
    """Whether an attempt in doubt may still send the same reference: asked again right before the call, which may be late."""
    return not isinstance(effect, ProviderKey) or _within_window(record, effect, longest_run)


def _take_over(reason: str, *, use_extra: bool = False) -> Decision:
    return Decision(
        move=Move.TAKE_OVER, reply=Reply.ACT, event="takeover", reason=reason, use_extra=use_extra
    )


def _hold(reason: str) -> Decision:
    return Decision(move=Move.HOLD, reply=Reply.HELD, event="held", reason=reason)


def _in_progress(seconds: float, reason: str) -> Decision:
    return Decision(
        move=Move.NOTHING, reply=Reply.IN_PROGRESS, reason=reason, wait=timedelta(seconds=max(0.0, seconds))
    )


PERSON_MOVES: Final = ("done", "redo", "abandon")
"""What a person can decide about a held, a stale or (done and abandon only) a released operation."""


def person_may(record: Record, act: str) -> bool:
    """Whether a person's ``done``, ``redo`` or ``abandon`` applies to this record now."""
    if record.state is State.HELD or record.stale:
        return act in PERSON_MOVES
    return record.state is State.RELEASED and act in ("done", "abandon")
