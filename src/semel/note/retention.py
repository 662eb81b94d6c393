"""How long records have to be kept: longer than the latest message that can still come."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from semel.core.durations import describe
from semel.note.ways import Kind, Way

SPARE = timedelta(days=1)
"""Retention is counted in days."""


@dataclass(frozen=True, slots=True)
class Retention:
    """What is proposed, and from what."""

    inputs: tuple[str, ...]
    longest: timedelta | None
    """The latest redelivery that is known; None where nothing is."""
    proposed: timedelta | None
    enough: bool
    """Whether the declared retention covers it."""
    unknown: tuple[str, ...]
    """What could come later, and no code says how late."""


def propose(ways: Iterable[Way], *, keep: timedelta, lease: timedelta, told: timedelta | None) -> Retention:
    """``told`` is how late a message can come, as somebody who knows the broker said; it adds to what code says."""
    inputs: list[str] = []
    unknown: list[str] = []
    latest: list[timedelta] = []
    if told is not None:
        inputs.append(f"told by --longest-redelivery: {describe(told)}")
        latest.append(told)
    for way in ways:
        known = _known(way)
        if known is not None:
            text, late = known
            inputs.append(text)
            latest.append(late)
        if told is None:
            unknown += _unknown(way)
    if not latest:
        return Retention(tuple(inputs), None, None, enough=False, unknown=_once(unknown))
    longest = max(latest)
    proposed = timedelta(days=-(-(longest + lease + SPARE) // timedelta(days=1)))
    return Retention(_once(inputs), longest, proposed, enough=keep >= proposed, unknown=_once(unknown))


def _once(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def _known(way: Way) -> tuple[str, timedelta] | None:
    match way.kind:
        case Kind.SEMEL if way.retries is not None:
            kept = way.kept or timedelta(days=30)
            text = f"semel queue: retries for {describe(way.retries)}, then a failed job is kept for {describe(kept)}"
            return text, way.retries + kept
        case Kind.SQS:
            late = way.kept or timedelta(days=28)
            return (
                f"Amazon SQS: 14 days at most in a queue, and 14 days among its dead letters: {describe(late)}",
                late,
            )
        case Kind.CELERY if way.retries:
            return f"Celery: retries for up to {describe(way.retries)}", way.retries
    return None


def _unknown(way: Way) -> list[str]:
    match way.kind:
        case Kind.SEMEL:
            return ["how far ahead jobs are scheduled (run_at)"]
        case Kind.CELERY:
            return [
                f"how long a message waits in {way.transport}, which keeps it until it is acknowledged, "
                "and how far ahead tasks "
                "are scheduled (eta, countdown)"
            ]
        case Kind.SQS:
            return []
        case Kind.CALL:
            return ["how late whoever calls it calls it again"]
    return []
