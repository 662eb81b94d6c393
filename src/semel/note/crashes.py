"""What each point at which a worker can die leads to, per effect, in words for those who sign."""

from __future__ import annotations

from dataclasses import dataclass

from semel.core.durations import describe, to_timedelta
from semel.core.effects import AcceptDuplicate, AcceptMiss, Effect, Hold, Lookup, ProviderKey, Row

NO = "no"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One point: what the next delivery does, and what that can come to."""

    point: str
    leads_to: str
    twice: str
    missing: str
    decides: str


def crash_points(effect: Effect, *, explicit: bool, stores: bool) -> tuple[Outcome, ...]:
    """The points in the order that a delivery passes them."""
    before = Outcome(
        "before the claim",
        "nothing is stored; the next delivery acts",
        NO,
        "only if no message comes again: the guard delivers nothing",
        "the queue",
    )
    gets = "gets the stored result" if stores else "returns nothing: no result is stored"
    after = Outcome(
        "after the completion",
        f"completed; each further delivery is a repeat, and {gets}",
        NO,
        NO,
        "nobody has to",
    )
    if isinstance(effect, Row):
        return (before, *_row(), after)
    inside, done = _uncertain(effect)
    if not explicit:
        inside = Outcome(
            f"after the claim, anywhere until the end of the function ({inside.point})", *_rest(inside)
        )
        return (before, inside, done, after)
    claimed = Outcome(
        "after the claim, before op.acting()",
        "once the lease is over the next delivery acts: nothing can have happened; an exception here releases at once",
        NO,
        "only if no message comes again; it is then listed by semel operations stale",
        "the queue",
    )
    return (before, claimed, inside, done, after)


def _rest(outcome: Outcome) -> tuple[str, str, str, str]:
    return outcome.leads_to, outcome.twice, outcome.missing, outcome.decides


def _row() -> tuple[Outcome, ...]:
    back = "the database rolled all of it back, the record too; the next delivery acts"
    missing = "only if no message comes again"
    return (
        Outcome("after the claim, before the commit", back, NO, missing, "the database"),
        Outcome(
            "inside, where the function commits midway by itself",
            "noticed, and held: half of the rows may be there",
            NO,
            "until a person has decided",
            "a person (semel held)",
        ),
    )


def _uncertain(effect: Effect) -> tuple[Outcome, Outcome]:
    """While the outside call runs, and after it took effect but before that was stored."""
    inside, done = "inside the outside call", "after the effect, before the completion"
    match effect:
        case Hold():
            return _hold(inside, done)
        case ProviderKey():
            return _provider_key(effect, inside, done)
        case Lookup():
            return _lookup(effect, inside, done)
        case AcceptDuplicate(extra=extra):
            again = f"once the lease is over the next delivery acts again, at most {extra} more; after that it is held"
            most = f"at most {1 + extra} in all"
            return (
                Outcome(inside, again, f"yes, {most}", NO, "this policy; at last a person"),
                Outcome(done, again, f"yes, {most}", NO, "this policy; at last a person"),
            )
        case AcceptMiss():
            missed = "once the lease is over it is completed as missed, without acting"
            return (
                Outcome(inside, missed, NO, "yes, if the call had not got through", "this policy"),
                Outcome(done, missed, NO, "no: it happened, and the record says missed", "this policy"),
            )
        case Row():
            raise AssertionError("a Row() has no outside call")


def _hold(inside: str, done: str) -> tuple[Outcome, Outcome]:
    held = "once the lease is over it is held: no delivery acts any more"
    person = "a person, who looks in the outside system (semel held)"
    return (
        Outcome(
            inside, held, "not unless the person says redo wrongly", "until the person has decided", person
        ),
        Outcome(
            done,
            held,
            "not unless the person says redo wrongly",
            "no: it happened; the record says so later",
            person,
        ),
    )


def _provider_key(effect: ProviderKey, inside: str, done: str) -> tuple[Outcome, Outcome]:
    window = describe(effect.window)
    then = "the look-up is asked" if isinstance(effect.then, Lookup) else "it is held"
    again = f"within {window} of the first use it is sent again with the same reference; after that {then}"
    decides = "the provider, by its idempotency key; after that " + (
        "the look-up" if isinstance(effect.then, Lookup) else "a person (semel held)"
    )
    twice = f"not while the provider keeps the key ({window})"
    return Outcome(inside, again, twice, NO, decides), Outcome(done, again, twice, NO, decides)


def _lookup(effect: Lookup, inside: str, done: str) -> tuple[Outcome, Outcome]:
    settle = describe(to_timedelta(effect.settle, name="settle"))
    asked = (
        f"{settle} after the last claim that may have acted ended, the outside system is asked by reference: done completes, "
        f"not done acts, unknown is asked again ({effect.looks} times at most), then held"
    )
    decides = "the look-up; at last a person (semel held)"
    return (
        Outcome(inside, asked, f'not unless it answers "not done" wrongly after {settle}', NO, decides),
        Outcome(done, asked, f'not unless it answers "not done" wrongly after {settle}', NO, decides),
    )
