"""What people read about operations: filters they ask with, and the rows they are shown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from semel.core.operations import Outcome, State
from semel.core.people import UNCLAIMED
from semel.core.report import When
from semel.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationFilter:
    """Which operations. Everything that is set must hold; nothing set means every operation."""

    states: frozenset[State] = frozenset()
    job_type: str | None = None
    scope: str | None = None
    label: str | None = None
    key: str | None = None
    """64 hexadecimal digits."""
    changed_before: When | None = None
    changed_after: When | None = None
    idle: timedelta | None = None
    """Only claims whose lease ended so long ago, and released ones that nobody claimed for that long, and ten minutes."""

    def __post_init__(self) -> None:
        for name in ("changed_before", "changed_after"):
            value = getattr(self, name)
            if isinstance(value, datetime) and value.utcoffset() is None:
                raise ConfigurationError(f"{name} has no time zone.", remedy="Give an aware datetime.")
        if self.key is not None and not is_key(self.key):
            raise ConfigurationError(
                f"{self.key!r} is no operation key.", remedy="It is 64 hexadecimal digits, in small letters."
            )

    @property
    def narrow(self) -> bool:
        """Whether it says more than states."""
        return self != OperationFilter(states=self.states, idle=self.idle)


def is_key(text: str) -> bool:
    """Whether it is a computed key: 64 hexadecimal digits."""
    return len(text) == 64 and not set(text) - set("0123456789abcdef")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationSummary:
    """One line of a list."""

    id: int
    scope: str
    job_type: str
    key: str
    label: str | None
    state: State
    outcome: Outcome | None
    claim: int
    """What a person's decision names, so that it cannot undo what came in between."""
    revision: int
    effect: str
    created_at: datetime
    changed_at: datetime
    claimed_at: datetime
    lease_until: datetime
    acting_at: datetime | None
    """When the point of no return was passed."""
    completed_at: datetime | None
    claims: int
    unsure: int
    takeovers: int
    looks: int
    extra_used: int
    reference: str
    generation: int
    reference_at: datetime
    held_reason: str | None
    last_error: str | None
    message_kept: bool
    """Whether it is known how to send it again."""
    key_version: int
    result_dropped: bool

    @property
    def name(self) -> str:
        """What people call it: its label, else the beginning of its key."""
        return self.label or self.key[:12]

    def condition(self, now: datetime) -> str:
        """The state as people say it: a claim past its lease is stale, a released one may wait unseen."""
        match self.state:
            case State.CLAIMED if self.lease_until <= now:
                return "stale"
            case State.RELEASED if self.changed_at <= now - UNCLAIMED:
                return "released, unclaimed"
            case State.COMPLETED:
                return f"completed ({self.outcome})"
        return self.state.value

    def waits(self, now: datetime) -> bool:
        """Whether it waits for somebody: a person can decide about it in every way."""
        return self.condition(now) in ("held", "stale", "released, unclaimed")

    def last_sign(self) -> datetime:
        """The last time that an attempt is known to have been alive."""
        known = [self.claimed_at, self.acting_at, self.changed_at if self.state is State.CLAIMED else None]
        return max(moment for moment in known if moment is not None)


@dataclass(frozen=True, slots=True)
class OperationPage:
    """Some operations, newest first. ``next_before_id`` goes on from there; None: there are no more."""

    as_of: datetime
    operations: tuple[OperationSummary, ...]
    next_before_id: int | None


@dataclass(frozen=True, slots=True)
class OperationEvent:
    """What happened to an operation beside the plain way: a takeover, a refusal, evidence, a person's decision."""

    at: datetime
    event: str
    claim: int
    who: str | None
    why: str | None
    detail: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRecord:
    """One operation with all there is about it."""

    as_of: datetime
    operation: OperationSummary
    result: Any
    message: Any
    """How to send it again: which adapter, and what that needs."""
    unsure_until: datetime | None
    """The end of the last claim that may have acted."""
    events: tuple[OperationEvent, ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job type's operations that wait for somebody."""

    job_type: str
    held: int
    stale: int
    """Claims whose lease ended long ago, and that nobody delivered again."""
    released: int
    """Released long ago, and not delivered again."""
    longest: timedelta
