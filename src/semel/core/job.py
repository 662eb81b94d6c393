"""A job on its way in and out of the table: what is enqueued, what is answered, what is claimed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec

from semel.core.durations import Duration, to_timedelta
from semel.core.outcomes import require_aware
from semel.core.retry import check_max_attempts
from semel.core.states import Status
from semel.errors import ConfigurationError

LONGEST_NAME = 200
"""Characters in a kind or a queue."""

LONGEST_KEY = 512
"""Characters in a unique or an ordering key."""

LONGEST_KEY_BYTES = 1_800
"""Of UTF-8. With a kind of at most 800 bytes the pair stays under the 2,704 that a btree entry can hold."""

_CONTROL: Final = re.compile("[\0-\x1f\x7f-\x9f]")
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


def check_name(value: str, *, name: str) -> str:
    """``value`` itself, if it can be a kind or a queue; ``name`` is what the error calls it."""
    _check_text(value, name, LONGEST_NAME)
    if _CONTROL.search(value):
        raise ConfigurationError(f"{name} {value!r} has a control character.", remedy="Use printable text.")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """How a job waits and runs. Checked when made; durations are kept as ``timedelta``."""

    queue: str = "default"
    priority: int = 0
    """-100 to 100; larger first."""
    max_attempts: int = 8
    run_at: datetime | None = None
    run_after: Duration | None = None
    """Counted from the database's clock at the insert."""
    unique_key: str | None = None
    """Unique within the kind until the job is finished, and at least ``unique_for`` from its enqueue."""
    unique_for: Duration | None = None
    ordering_key: str | None = None

    def __post_init__(self) -> None:
        check_name(self.queue, name="queue")
        if type(self.priority) is not int or not -100 <= self.priority <= 100:
            raise ConfigurationError(
                f"priority is {self.priority!r}: give a whole number from -100 to 100.",
                remedy="Larger runs first.",
            )
        check_max_attempts(self.max_attempts)
        for name in ("unique_key", "ordering_key"):
            value = getattr(self, name)
            if value is not None:
                _check_text(value, name, LONGEST_KEY)
        self._check_times()

    def _check_times(self) -> None:
        if self.run_at is not None:
            require_aware(self.run_at, name="run_at")
            if self.run_at.year < 2:  # in another zone it is before year 1, which Python cannot read back
                raise ConfigurationError(
                    "run_at is before year 2.", remedy="Leave it out: the job is due at once."
                )
            if self.run_after is not None:
                raise ConfigurationError("run_at and run_after are both given.", remedy="Give one of them.")
        if self.unique_for is not None and self.unique_key is None:
            raise ConfigurationError(
                "unique_for is given without a unique_key.", remedy="Give unique_key as well."
            )
        for name in ("run_after", "unique_for"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, to_timedelta(value, name=name))

    @property
    def delay(self) -> timedelta | None:
        """``run_after`` as a timedelta."""
        return None if self.run_after is None else to_timedelta(self.run_after, name="run_after")

    @property
    def unique_time(self) -> timedelta | None:
        """``unique_for`` as a timedelta."""
        return None if self.unique_for is None else to_timedelta(self.unique_for, name="unique_for")


class NewJob(msgspec.Struct, frozen=True, gc=False):
    """A job to insert. ``payload`` is a JSON object, the arguments by name, from ``Signature.encode``."""

    kind: str
    payload: bytes
    options: JobOptions = msgspec.field(default_factory=JobOptions)

    def __post_init__(self) -> None:
        kind, payload = self.kind, self.payload
        if not (
            type(kind) is str and kind.isascii() and kind.isprintable() and 0 < len(kind) <= LONGEST_NAME
        ):
            check_name(kind, name="kind")
        if not isinstance(payload, bytes) or payload[:1] != b"{" or payload[-1:] != b"}":
            raise ConfigurationError(f"The payload of {self.kind} is not the bytes of a JSON object.")


class Enqueued(msgspec.Struct, frozen=True, gc=False):
    """The answer to one enqueue: a new job, or (``created`` false) the one that has its unique key."""

    id: int
    created: bool
    status: Status


@dataclass(frozen=True, slots=True)
class Attempt:
    """Whose outcome is written: (job_id, claim, worker) is the fence."""

    job_id: int
    claim: int
    worker: int
    kind: str
    attempt: int
    """From 1."""
    max_attempts: int
    crashes: int = 0


class ClaimedJob(msgspec.Struct, frozen=True, gc=False):
    """A row as a claim returned it."""

    id: int
    claim: int
    worker: int
    kind: str
    payload: bytes | str
    attempt: int
    max_attempts: int
    crashes: int
    queue: str
    priority: int
    run_at: datetime
    ordering_key: str | None = None

    def identity(self) -> Attempt:
        """The part that settling needs."""
        return Attempt(
            job_id=self.id,
            claim=self.claim,
            worker=self.worker,
            kind=self.kind,
            attempt=self.attempt,
            max_attempts=self.max_attempts,
            crashes=self.crashes,
        )


def _check_text(value: str, name: str, longest: int) -> None:
    if not isinstance(value, str):
        raise ConfigurationError(f"{name} is {value!r}: not a string.")
    if not value:
        raise ConfigurationError(f"{name} is empty.")
    if len(value) > longest:
        raise ConfigurationError(f"{name} has {len(value)} characters; at most {longest} are allowed.")
    if value.isascii() and "\0" not in value:
        return
    if _UNSTORABLE.search(value):
        raise ConfigurationError(
            f"{name} {value!r} has a NUL or a lone surrogate, which PostgreSQL cannot store."
        )
    size = len(value.encode())
    if size > LONGEST_KEY_BYTES:
        raise ConfigurationError(f"{name} has {size} bytes; at most {LONGEST_KEY_BYTES} fit into its index.")
