"""Bursts: many different references that come again within minutes, far more than the rest of the time would give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from semel.core.past import Bucket
from semel.repeats.chance import poisson_tail

WINDOW_MS: Final = 5 * 60_000
_FEWEST: Final = 10
_TIMES_EXPECTED: Final = 5
_CHANCE: Final = 1e-9
"""Small, since every minute is looked at."""


@dataclass(frozen=True, slots=True)
class Burst:
    """A stretch in which so many references came for the second time."""

    from_ms: int
    to_ms: int
    references: int
    by_chance: float


def find_bursts(buckets: Sequence[Bucket], step_ms: int) -> list[Burst]:
    """Stretches of five minutes or more, the largest first."""
    starts = [bucket.start_ms for bucket in buckets]
    newly = list(accumulate((bucket.newly_repeated for bucket in buckets), initial=0))
    active = list(accumulate((bucket.deliveries for bucket in buckets), initial=0))
    per_delivery = newly[-1] / active[-1] if active[-1] else 0.0
    stretches: list[list[int]] = []
    first = 0
    for place, start in enumerate(starts):
        while starts[first] <= start - max(WINDOW_MS, step_ms):
            first += 1
        count = newly[place + 1] - newly[first]
        expected = per_delivery * (active[place + 1] - active[first])
        if count < max(_FEWEST, _TIMES_EXPECTED * expected) or poisson_tail(count, expected) > _CHANCE:
            continue
        if stretches and first <= stretches[-1][1]:
            stretches[-1][1] = place
        else:
            stretches.append([first, place])
    bursts = [_trimmed(buckets, step_ms, low, high, per_delivery) for low, high in stretches]
    return sorted(bursts, key=lambda burst: (-burst.references, burst.from_ms))


def _trimmed(buckets: Sequence[Bucket], step_ms: int, low: int, high: int, per_delivery: float) -> Burst:
    """From its first repeat to its last one."""
    used = [bucket for bucket in buckets[low : high + 1] if bucket.newly_repeated]
    return Burst(
        used[0].start_ms,
        used[-1].start_ms + step_ms,
        sum(bucket.newly_repeated for bucket in used),
        per_delivery * sum(bucket.deliveries for bucket in buckets[low : high + 1]),
    )
