"""Whether repeats come at deploys: more than chance would put there, by two reckonings that must agree."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from semel.core.past import Bucket
from semel.repeats.chance import binomial_tail

SIGNIFICANT: Final = 0.01
_FEWEST: Final = 3
_SHIFTS: Final = 999
_FEWER_SHIFTS: Final = 499
_MANY_DEPLOYS: Final = 500


@dataclass(frozen=True, slots=True)
class AtDeploys:
    """What was found within the window after each deploy."""

    deploys: int
    inside: int
    """Deploys within the time of the data: the others say nothing."""
    window_ms: int
    repeats: int
    at_deploys: int
    by_chance: float
    """So many repeats would fall there if they followed all deliveries."""
    activity_share: float
    p_value: float
    """Binomial, one-sided: takes each repeat for an event by itself."""
    p_shifted: float
    """How often the same deploys, moved along the activity, meet as many: holds for repeats that come in crowds too."""

    @property
    def holds(self) -> bool:
        """Whether repeats come at deploys."""
        return (
            self.at_deploys >= _FEWEST
            and self.at_deploys > self.by_chance
            and self.p_value < SIGNIFICANT
            and self.p_shifted < SIGNIFICANT
        )


class _Timeline:
    """Buckets with running sums, so that any stretch is counted in two look-ups."""

    def __init__(self, buckets: Sequence[Bucket], step_ms: int, window_ms: int) -> None:
        self.starts = [bucket.start_ms for bucket in buckets]
        self.activity = list(accumulate((bucket.deliveries for bucket in buckets), initial=0))
        self.repeats = list(accumulate((bucket.repeats for bucket in buckets), initial=0))
        self._step = step_ms
        self._window = max(step_ms, window_ms)

    def first_of(self, moment_ms: int) -> int:
        return moment_ms - moment_ms % self._step

    def count(self, starts: Iterable[int]) -> tuple[int, int]:
        """Repeats and deliveries within the windows that begin there; where they overlap, once."""
        repeats = activity = done = 0
        for start in sorted(starts):
            low = max(done, bisect_left(self.starts, start))
            high = bisect_left(self.starts, start + self._window)
            if high > low:
                repeats += self.repeats[high] - self.repeats[low]
                activity += self.activity[high] - self.activity[low]
                done = high
        return repeats, activity


def at_deploys(
    buckets: Sequence[Bucket], step_ms: int, deploys_ms: Sequence[int], window_ms: int
) -> AtDeploys:
    """Counts the repeats of the minute of each deploy and of the window after it, and what chance would give."""
    line = _Timeline(buckets, step_ms, window_ms)
    end = line.starts[-1] + step_ms if buckets else 0
    inside = [line.first_of(moment) for moment in deploys_ms if buckets and line.starts[0] <= moment < end]
    all_repeats, all_activity = line.repeats[-1], line.activity[-1]
    found, active = line.count(inside)
    share = active / all_activity if all_activity else 0.0
    enough = found >= _FEWEST and found > all_repeats * share
    return AtDeploys(
        deploys=len(deploys_ms),
        inside=len(inside),
        window_ms=max(step_ms, window_ms),
        repeats=all_repeats,
        at_deploys=found,
        by_chance=all_repeats * share,
        activity_share=share,
        p_value=binomial_tail(found, all_repeats, share),
        p_shifted=_shifted(line, inside, found) if enough else 1.0,
    )


def _shifted(line: _Timeline, deploys: Sequence[int], found: int) -> float:
    """The deploys keep their distances, counted in deliveries between them; only where they begin changes."""
    total = line.activity[-1]
    shifts = _SHIFTS if len(deploys) <= _MANY_DEPLOYS else _FEWER_SHIFTS
    places = [line.activity[bisect_left(line.starts, moment)] for moment in deploys]
    as_many = 0
    for shift in range(1, shifts + 1):
        moved = ((place + shift * total // (shifts + 1)) % total for place in places)
        starts = (line.starts[bisect_left(line.activity, place + 1) - 1] for place in moved)
        as_many += line.count(starts)[0] >= found
    return (as_many + 1) / (shifts + 1)
