"""What a handler can know and say about the attempt that it is."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from semel.core.job import ClaimedJob
from semel.errors import ClaimLost, ConfigurationError, TimedOut

logger = logging.getLogger("semel.job")
_NOWHERE: Final = uuid.UUID(int=0)


class AttemptState(Protocol):
    """What the worker knows of an attempt, as the context sees it; safe to read from the handler's thread."""

    @property
    def lost(self) -> bool: ...
    @property
    def stopping(self) -> bool: ...
    def report(self, fraction: float | None, message: str | None) -> None: ...


class JobLog(logging.LoggerAdapter[logging.Logger]):
    """A logger that puts the job's id, kind and attempt beside each line."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        given = kwargs.get("extra") or {}
        kwargs["extra"] = dict(self.extra or {}) | dict(given)
        return msg, kwargs


@dataclass(frozen=True, slots=True)
class JobContext:
    """The first argument of a handler declared with ``context=True``. Of one attempt; do not keep it."""

    job_id: int
    kind: str
    queue: str
    attempt: int
    """From 1."""
    max_attempts: int
    crashes: int
    """How often a worker died while it ran this job."""
    run_at: datetime
    timeout: timedelta | None
    connection: Any = field(default=None, repr=False)
    """The transaction's connection, for a job declared with ``transaction=True``."""
    _installation: uuid.UUID = field(default=_NOWHERE, repr=False)
    _deadline: float | None = field(default=None, repr=False)
    _state: AttemptState | None = field(default=None, repr=False)

    @property
    def reference(self) -> str:
        """The same string over all attempts of this job, and of no other job anywhere: for a provider's idempotency key.

        A name-based UUID of (installation, job id), RFC 9562 version 5.
        """
        return str(uuid.uuid5(self._installation, str(self.job_id)))

    @property
    def installation(self) -> str:
        """The name of the installation that the job is in."""
        return str(self._installation)

    @property
    def log(self) -> JobLog:
        return JobLog(logger, {"job_id": self.job_id, "kind": self.kind, "attempt": self.attempt})

    @property
    def deadline(self) -> datetime | None:
        """When the time-out ends this attempt, on this machine's clock; None where there is none."""
        left = self.time_left
        return None if left is None else datetime.now(UTC) + left

    @property
    def time_left(self) -> timedelta | None:
        """Until the time-out; None where there is none, negative when it has passed."""
        return None if self._deadline is None else timedelta(seconds=self._deadline - time.monotonic())

    @property
    def lease_lost(self) -> bool:
        """Whether this attempt is known to have lost its claim. False is no promise: the news takes a lease beat."""
        return self._state is not None and self._state.lost

    @property
    def stopping(self) -> bool:
        """Whether the worker wants this attempt to end, because it shuts down or the time-out has passed."""
        return self._state is not None and self._state.stopping

    def check(self) -> None:
        """Raise `ClaimLost` or `TimedOut` if this attempt should not go on. Cheap: call it before each step of long work."""
        if self.lease_lost:
            raise ClaimLost(
                f"Attempt {self.attempt} of job {self.job_id} no longer holds its claim.",
                holds="Another attempt runs or has ended, or the job was cancelled.",
                remedy="Stop; nothing that this attempt reports is stored.",
            )
        left = self.time_left
        if left is not None and left < timedelta(0):
            raise TimedOut(f"Attempt {self.attempt} of job {self.job_id} is past its time-out.")

    def progress(self, fraction: float | None = None, message: str | None = None) -> None:
        """Say how far this attempt is, from 0 to 1, and what it does. Stored about once a second, the newest only."""
        if fraction is not None and not 0 <= fraction <= 1:
            raise ConfigurationError(f"Progress is a fraction from 0 to 1, not {fraction!r}.")
        if message is not None:
            message = message.replace("\0", "\ufffd")[:500].encode(errors="replace").decode()
        if self._state is not None:
            self._state.report(fraction, message)


def make_context(
    job: ClaimedJob,
    *,
    installation: uuid.UUID,
    timeout: timedelta | None,
    deadline: float | None,
    state: AttemptState | None,
    connection: Any = None,
) -> JobContext:
    """The context of one claimed job."""
    return JobContext(
        job_id=job.id,
        kind=job.kind,
        queue=job.queue,
        attempt=job.attempt,
        max_attempts=job.max_attempts,
        crashes=job.crashes,
        run_at=job.run_at,
        timeout=timeout,
        connection=connection,
        _installation=installation,
        _deadline=deadline,
        _state=state,
    )
