"""What the gaps between deliveries of one reference look like: equal ones, short ones, long ones."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from semel.core.past import GapGroup
from semel.repeats.chance import binomial_tail

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
CLOSE_MS: Final = MINUTE
"""Up to here a repeat is taken for a retry, or for one message delivered twice."""
FAR_MS: Final = HOUR
"""From here on it is taken for work that was enqueued again."""
EDGES: Final = (
    0, 100, SECOND, 3 * SECOND, 10 * SECOND, 30 * SECOND, MINUTE, 3 * MINUTE, 10 * MINUTE, 30 * MINUTE,
    HOUR, 3 * HOUR, 12 * HOUR, DAY, 3 * DAY, 7 * DAY, 30 * DAY, 90 * DAY, 365 * DAY,
)  # fmt: skip
"""Where the bars of the histogram begin: about three a decade."""
_UNITS: Final = (
    (1, "ms", SECOND), (SECOND, "s", 10 * MINUTE), (MINUTE, "min", 3 * HOUR), (HOUR, "h", 2 * DAY),
    (DAY, "days", math.inf),
)  # fmt: skip
_WIDTH: Final = 0.03
"""Equal gaps lie within 3%; short ones, which a worker's own pace blurs, within a tenth, and a second at most."""
_AROUND: Final = 1.5
_FEWEST: Final = 6
_LEAST_SHARE: Final = 0.05
_CONCENTRATED: Final = 0.5
_CHANCE: Final = 0.001
_MOST_PEAKS: Final = 5


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of the histogram; the last one has no end."""

    from_ms: int
    to_ms: int | None
    gaps: int


@dataclass(frozen=True, slots=True)
class Peak:
    """Gaps that are equal, but for what a worker takes to come round."""

    about_ms: int
    gaps: int
    least_ms: int
    most_ms: int


def histogram(groups: Sequence[GapGroup]) -> list[Bar]:
    """From the first bar with a gap in it to the last one."""
    counts = [0] * len(EDGES)
    for group in groups:
        counts[bisect_left(EDGES, group.low_ms + 1) - 1] += group.gaps
    used = [place for place, count in enumerate(counts) if count]
    if not used:
        return []
    return [
        Bar(EDGES[place], EDGES[place + 1] if place + 1 < len(EDGES) else None, counts[place])
        for place in range(used[0], used[-1] + 1)
    ]


def find_peaks(groups: Sequence[GapGroup]) -> list[Peak]:
    """Equal gaps, the most first. A broad spread has none: at least half of all gaps near a peak must be in it."""
    left = [group for group in sorted(groups, key=lambda each: each.low_ms) if group.least_ms >= SECOND]
    all_gaps = sum(group.gaps for group in groups)
    peaks: list[Peak] = []
    while left and len(peaks) < _MOST_PEAKS:
        peak = _highest(left, all_gaps)
        if peak is None:
            break
        peaks.append(peak)
        left = [group for group in left if not peak.least_ms <= group.least_ms <= peak.most_ms]
    return peaks


def _highest(groups: Sequence[GapGroup], all_gaps: int) -> Peak | None:
    starts = [group.least_ms for group in groups]
    sums = list(accumulate((group.gaps for group in groups), initial=0))
    best: tuple[int, int, int] | None = None
    for first, start in enumerate(starts):
        end = bisect_left(starts, start + _tolerance(start))
        count = sums[end] - sums[first]
        if (best is None or count > best[0]) and _is_peak(count, all_gaps, groups, (first, end), sums):
            best = (count, first, end)
    if best is None:
        return None
    inside = groups[best[1] : best[2]]
    mean = sum(group.total_ms for group in inside) / best[0]
    least, most = inside[0].least_ms, max(group.most_ms for group in inside)
    return Peak(round_duration(mean, least, most), best[0], least, most)


def _is_peak(
    count: int, all_gaps: int, groups: Sequence[GapGroup], place: tuple[int, int], sums: Sequence[int]
) -> bool:
    if count < _FEWEST or count < _LEAST_SHARE * all_gaps:
        return False
    starts = [group.least_ms for group in groups]
    start = starts[place[0]]
    wide = start + _tolerance(start)
    low, high = bisect_left(starts, int(start / _AROUND)), bisect_left(starts, int(wide * _AROUND))
    near = sums[high] - sums[low]
    if count < _CONCENTRATED * near:
        return False
    share = math.log(wide / start) / math.log(wide * _AROUND / (start / _AROUND))
    return binomial_tail(count, near, share) / share < _CHANCE


def _tolerance(start: int) -> float:
    return max(_WIDTH * start, min(SECOND, start / 10)) + 1


def round_duration(mean: float, least: int, most: int) -> int:
    """As a person would have set it: the roundest number that the gaps are about."""
    for unit in (
        DAY,
        HOUR,
        30 * MINUTE,
        10 * MINUTE,
        5 * MINUTE,
        MINUTE,
        30 * SECOND,
        10 * SECOND,
        5 * SECOND,
        SECOND,
    ):
        nearest = round(mean / unit) * unit
        if nearest and abs(nearest - mean) <= 0.02 * mean and least - 0.02 * mean <= nearest <= most:
            return nearest
    digits: int = 10 ** max(0, math.floor(math.log10(mean)) - 2)
    return round(mean / digits) * digits


def say_duration(milliseconds: float) -> str:
    """As people say it: "250 ms", "360 s", "30 min", "4 h", "2 days". Seconds as far as ten minutes."""
    size, unit = next((size, unit) for size, unit, until in _UNITS if milliseconds < until)
    figure = f"{milliseconds / size:.1f}".removesuffix(".0")
    return f"{figure} {unit}"
