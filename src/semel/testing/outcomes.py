"""How one attempt ended, as tests look at it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from semel.core.decide import Settlement
from semel.core.job import ClaimedJob
from semel.core.outcomes import JobOutcome
from semel.core.states import Status


class Outcome(StrEnum):
    """What became of a job by one attempt."""

    DONE = "done"
    RETRIED = "retried"
    """Waits for its next attempt; this one was charged."""
    SNOOZED = "snoozed"
    """Waits to run again; no attempt was charged."""
    CANCELLED = "cancelled"
    HELD = "held"
    FAILED = "failed"


class AttemptFailed(AssertionError):
    """An attempt ended with an error whose exception is not at hand: it ran in another process, or none was raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOutcome:
    """One attempt: what ran, what it returned or raised, and what a worker writes of it."""

    job: ClaimedJob
    settlement: Settlement
    """What is written: status, delay, error, the result as JSON, the reason."""
    result: Any = None
    """What the handler returned, itself."""
    exception: BaseException | None = None
    """What it raised, if anything."""
    progress: tuple[tuple[float | None, str | None], ...] = ()
    """What it reported with ``ctx.progress``; known where it ran inline."""

    @property
    def outcome(self) -> Outcome:
        """In one word."""
        if self.settlement.status is Status.PENDING:
            return Outcome.SNOOZED if self.settlement.refund else Outcome.RETRIED
        return Outcome(self.settlement.status.value)

    @property
    def failed(self) -> bool:
        """Whether it ended with an error, rather than by returning or by an outcome that the handler chose.

        A chosen retry that was one too many is an error.
        """
        error = self.settlement.error
        if self.settlement.status is Status.FAILED:
            return True
        if self.exception is not None:
            return error is not None and not isinstance(self.exception, JobOutcome)
        return error is not None and not error.type.startswith(JobOutcome.__module__)

    def value(self) -> Any:
        """What the handler returned; raises what it raised instead, if anything."""
        if self.exception is not None:
            raise self.exception
        if self.settlement.error is not None or self.failed:
            raise AttemptFailed(self.describe())
        return self.result

    def describe(self) -> str:
        """A line or two for a failure's message."""
        job, settlement = self.job, self.settlement
        line = f"job {job.id} {job.kind}, attempt {job.attempt} of {job.max_attempts}: {self.outcome}"
        if settlement.error is not None:
            line += f": {settlement.error.type}: {settlement.error.message}"
            if self.exception is None and settlement.error.traceback:
                line += f"\n{settlement.error.traceback}"
        elif settlement.reason:
            line += f": {settlement.reason}"
        return line


def raise_first(outcome: AttemptOutcome) -> None:
    """Raise the error of an attempt that failed, its own exception where it is at hand."""
    if outcome.failed:
        outcome.value()
