"""What the records say of past and open attempts: how long they took, what is not completed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from semel.core.operations import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Attempts of one job type that acted and completed."""

    job_type: str
    count: int
    p99: timedelta
    """The time from claim to completion that 99 in 100 did not exceed."""
    longest: timedelta
    first: datetime
    last: datetime
    past_lease: int
    """How many completed after their lease had ended: the next delivery could have taken over."""
    longest_past_lease: timedelta
    """Zero where none did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """Operations of one job type in one state that are not completed."""

    job_type: str
    state: State
    count: int
    longest: timedelta
    """Since the lease ended (claimed; zero while it runs), else since the last change."""
    oldest_claim: timedelta
