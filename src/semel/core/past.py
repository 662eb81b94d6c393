"""What a history of deliveries tells: which references came more than once, when, how far apart. Times are ms since 1970."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_MS: Final = -62_135_596_800_000
"""The beginning of year 1, the first that a date can be here."""
LAST_MS: Final = 253_402_300_800_000
"""The beginning of year 10,000, the first that no date can be."""
BEFORE_ALL_MS: Final = -210_866_000_000_000
AFTER_ALL_MS: Final = 9_000_000_000_000_000
"""What any time that a database knows lies between, and PostgreSQL still takes for a time."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How much was there, what could not be counted, and how much of the rest repeats."""

    rows: int
    without_reference: int
    without_time: int
    unreadable_time: int
    deliveries: int
    """What was counted: it has a reference, and a time that can be read."""
    repeated_references: int
    repeats: int
    """Deliveries after the first of their reference."""
    first_ms: int | None
    last_ms: int | None

    @property
    def references(self) -> int:
        """How many different ones there are."""
        return self.deliveries - self.repeats


@dataclass(frozen=True, slots=True)
class RepeatedReference:
    """One reference that came more than once; ``times_ms`` holds its first deliveries, not always all."""

    reference: tuple[str, ...]
    deliveries: int
    first_ms: int
    last_ms: int
    shortest_gap_ms: int
    longest_gap_ms: int
    times_ms: tuple[int, ...]

    @property
    def gaps_ms(self) -> tuple[int, ...]:
        """Between the deliveries that are known one by one."""
        return tuple(
            later - earlier for earlier, later in zip(self.times_ms, self.times_ms[1:], strict=False)
        )


@dataclass(frozen=True, slots=True)
class GapGroup:
    """Gaps that are the same to one percent."""

    low_ms: int
    gaps: int
    least_ms: int
    most_ms: int
    total_ms: int


@dataclass(frozen=True, slots=True)
class Bucket:
    """What came from ``start_ms`` on, for one step of the history."""

    start_ms: int
    deliveries: int
    repeats: int
    newly_repeated: int
    """References whose second delivery this is: so many different ones."""


@dataclass(frozen=True, slots=True)
class Past:
    """The repeats of one history."""

    counts: Counts
    listed: tuple[RepeatedReference, ...]
    gaps: tuple[GapGroup, ...]
    buckets: tuple[Bucket, ...]
    step_ms: int
    """How long one bucket is."""


def to_instant(milliseconds: int) -> datetime:
    """As a date in UTC; beyond what a date can be, the first or the last one."""
    inside = min(max(milliseconds, FIRST_MS), LAST_MS - 1)
    return EPOCH + timedelta(milliseconds=inside)


def to_milliseconds(instant: datetime) -> int:
    """Since 1970; the instant has a zone."""
    return round((instant - EPOCH) / timedelta(milliseconds=1))
