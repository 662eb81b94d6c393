"""What people read about jobs: filters they ask with, and the rows they are shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Final, TypeAlias

from semel.core.states import Status
from semel.errors import ConfigurationError

When: TypeAlias = datetime | timedelta
"""An instant, or how long ago on the database's clock."""


DEEPEST: Final = 100
"""Levels of stored JSON that are read; what others have stored may have thousands, which no reader of JSON takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs. Everything that is set must hold; nothing set means every job."""

    statuses: frozenset[Status] = frozenset()
    queue: str | None = None
    kind: str | None = None
    unique_key: str | None = None
    error: str | None = None
    """Text that the last error contains, in any case."""
    created_before: When | None = None
    created_after: When | None = None
    finished_before: When | None = None
    finished_after: When | None = None

    def __post_init__(self) -> None:
        for name in ("created_before", "created_after", "finished_before", "finished_after"):
            value = getattr(self, name)
            if isinstance(value, datetime) and value.utcoffset() is None:
                raise ConfigurationError(f"{name} has no time zone.", remedy="Give an aware datetime.")

    @property
    def narrow(self) -> bool:
        """Whether it says more than statuses."""
        return self != JobFilter(statuses=self.statuses)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    """One line of a list."""

    id: int
    kind: str
    queue: str
    status: Status
    priority: int
    attempts: int
    max_attempts: int
    crashes: int
    run_at: datetime
    locked_until: datetime | None
    created_at: datetime
    finished_at: datetime | None
    unique_key: str | None
    last_error: str | None
    progress: float | None
    progress_message: str | None

    def condition(self, now: datetime) -> str:
        """The status as people say it: what pending waits for, whether a lease ran out."""
        match self.status:
            case Status.PENDING if self.run_at <= now:
                return "due"
            case Status.PENDING:
                return "retrying" if self.attempts else "delayed"
            case Status.RUNNING if self.locked_until is not None and self.locked_until < now:
                return "expired"
        return self.status.value


@dataclass(frozen=True, slots=True)
class JobPage:
    """Some jobs, newest first. ``next_before_id`` goes on from there; None: there are no more."""

    as_of: datetime
    jobs: tuple[JobSummary, ...]
    next_before_id: int | None


@dataclass(frozen=True, slots=True)
class JobEvent:
    """What a person did to a job."""

    at: datetime
    act: str
    who: str
    why: str | None
    before: str
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """One job with all there is about it."""

    as_of: datetime
    job: JobSummary
    payload: Any
    """A dict; or its text, where nothing can read it (`read_json`). So are ``result`` and ``meta``."""
    result: Any
    errors: tuple[dict[str, Any], ...]
    """The last ten attempts', oldest first: attempt, at, type, message, traceback, reason where known."""
    events: tuple[JobEvent, ...]
    unique_until: datetime | None
    ordering_key: str | None
    claim: int
    worker: int | None
    in_history: bool
    meta: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCounts:
    """One queue's jobs outside the history, each counted once."""

    queue: str
    due: int
    delayed: int
    retrying: int
    """Waiting for a further attempt that is not due yet."""
    running: int
    expired: int
    """Running, but past the lease: the next claim rescues them."""
    failed: int
    held: int
    finished: int
    """Done or cancelled, remembered for their unique key."""
    oldest_due: timedelta | None
    """How long the one that is due longest has waited."""


@dataclass(frozen=True, slots=True)
class ScheduleSummary:
    """A schedule as the workers noted it."""

    name: str
    definition: str
    kind: str
    since: datetime
    seen_at: datetime
    last_tick: datetime | None


@dataclass(frozen=True, slots=True)
class HistoryDaySummary:
    """One day (UTC) of the history; ``jobs`` is the database's estimate, None before it made one."""

    day: date
    jobs: int | None
    bytes: int


@dataclass(frozen=True, slots=True)
class Overview:
    """Counts of everything, at one instant."""

    as_of: datetime
    queues: tuple[QueueCounts, ...]
    history: tuple[HistoryDaySummary, ...] = field(default=())


def read_json(text: str | None) -> Any:
    """Stored JSON as people are shown it: its value, or its text, where it is nested too deep or has a giant number."""
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (RecursionError, ValueError):
        return text
    return value if _is_shallow(value) else text


def _is_shallow(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        level = [child for each in level for child in _children(each)]
        if not level:
            return True
    return False


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value
