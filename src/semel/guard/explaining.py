"""What a guarded function promises, in words and as data: the source of the note that its authors sign."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from semel.core.durations import describe
from semel.core.effects import AcceptDuplicate, Effect, Promise, Row, promise
from semel.core.operations import Limits
from semel.guard.declaration import Arguments
from semel.guard.guarded import Guarded


@dataclass(frozen=True, slots=True)
class Explanation:
    """What holds for one guarded function."""

    job_type: str
    key: str
    """How the key is made, with a worked example where arguments were given."""
    payload: str
    effect: str
    promise: Promise
    lease: str
    acting: str
    crashes: Mapping[str, str]
    """What each point at which the worker can die leads to."""
    limits: str

    def __str__(self) -> str:
        lines = [
            f"{self.job_type}",
            f"  key: {self.key}",
            f"  payload: {self.payload}",
            f"  effect: {self.effect}: never more than {self.promise.never_more_than}; completed means "
            f"{self.promise.completed_means}",
            f"  lease: {self.lease}",
            f"  point of no return: {self.acting}",
        ]
        lines += [f"  {point}: {result}" for point, result in self.crashes.items()]
        return "\n".join([*lines, f"  limits: {self.limits}"])


def explain(guarded: Guarded[Any, Any], *args: Any, **kwargs: Any) -> Explanation:
    """Explain a guarded function; with the arguments of one call, its key is worked out as an example."""
    declaration = guarded.declaration
    source = declaration.key
    named = (
        "a function of the arguments"
        if callable(source)
        else ", ".join([source] if isinstance(source, str) else source)
    )
    key = named
    if args or kwargs:
        computed = declaration.compute_key(Arguments(guarded.signature, args, kwargs))
        shown = computed.text if declaration.secret is None else "(an HMAC; its text is not shown)"
        key = f"{named}; for this call {shown} → {computed.digest}"
    promised = promise(declaration.effect)
    return Explanation(
        job_type=declaration.job_type,
        key=key,
        payload=_payload(declaration.payload),
        effect=declaration.effect.name,
        promise=promised,
        lease=f"{describe(declaration.lease)}, longest run {describe(declaration.longest_run)}"
        + (", extended while it runs" if declaration.extend else ""),
        acting="with op.acting():" if declaration.acting == "explicit" else "the function's start",
        crashes=_crashes(declaration.effect, promised, explicit=declaration.acting == "explicit"),
        limits=_limits(declaration.limits, declaration.effect),
    )


def _payload(payload: tuple[str, ...] | None) -> str:
    if payload is None:
        return "all arguments that differ from their defaults"
    return ", ".join(payload) if payload else "not compared"


def _crashes(effect: Effect, promised: Promise, *, explicit: bool) -> dict[str, str]:
    if isinstance(effect, Row):
        return {
            "before the commit": "nothing is stored; the next delivery acts",
            "after the commit": "completed; the next delivery is a repeat",
        }
    nothing = "after the lease the next delivery acts: nothing can have happened"
    stale = f"after the lease: {promised.stale}"
    again = " (and so may a second effect happen)" if isinstance(effect, AcceptDuplicate) else ""
    return {
        "after the claim, before acting": nothing if explicit else stale + again,
        "while acting": stale + again,
        "after the effect, before the completion": stale + again,
        "after the completion": "completed; the next delivery is a repeat",
    }


def _limits(limits: Limits, effect: Effect) -> str:
    if isinstance(effect, Row):
        return "only what is written on the transaction's own connection is part of it; a commit midway ends in held"
    return (
        f"held after {limits.max_unsure} attempts that nobody can tell about, or {limits.max_takeovers} takeovers; a worker "
        "that is paused past its lease inside its outside call can still act: only the outside system can refuse it"
    )
