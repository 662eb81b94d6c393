"""What a person decides about an operation whose effect is uncertain, and when the decision applies.

The person was shown a claim number and a revision; both only rise. Another claim number means another attempt; another
revision, that something was written since: the same attempt may have gone on, and acted.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Final

from semel.core.operations import Outcome, Record, State, person_may

UNCLAIMED: Final = timedelta(minutes=10)
"""A claim whose lease ended, or a released operation, that nobody delivered again for so long is listed as stale."""


class Act(StrEnum):
    """What a person decides."""

    DONE = "done"
    """The effect happened: further deliveries are repeats."""
    REDO = "redo"
    """It did not happen: the next delivery acts."""
    ABANDON = "abandon"
    """Whether or not it happened, it is not to be tried again."""

    @property
    def outcome(self) -> Outcome:
        """What the record then says of how it ended."""
        return Outcome.ABANDONED if self is Act.ABANDON else Outcome.BY_PERSON


def refusal(
    record: Record, act: Act, *, seen: int, revision: int | None = None, waiting: float
) -> str | None:
    """Why a decision does not apply to the record now; None where it does. Without a revision, the claim alone counts.

    ``waiting`` is for how many seconds nothing was written about it: a released operation that nobody claims for a while
    may be sent again.
    """
    if record.claim != seen:
        return f"it has claim {record.claim} now, no longer {seen}"
    reason = _state_forbids(record, act, waiting)
    if reason is None and revision is not None and record.revision != revision:
        return (
            f"it was written since it was shown: it has revision {record.revision} now, no longer {revision}"
        )
    return reason


def _state_forbids(record: Record, act: Act, waiting: float) -> str | None:
    if person_may(record, act.value):
        return None
    match record.state:
        case State.CLAIMED:
            return f"an attempt holds its lease for another {record.lease_left:.0f} s"
        case State.COMPLETED:
            return f"it is completed ({record.outcome})"
        case State.RELEASED if waiting >= UNCLAIMED.total_seconds():
            return None
    left = UNCLAIMED.total_seconds() - waiting
    return f"it was released {waiting:.0f} s ago and waits for its next delivery (a redo: in {left:.0f} s)"
