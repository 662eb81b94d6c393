"""Schedules as an application declares them; checked when declared, told apart by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from semel.core.job import JobOptions
from semel.core.schedule import Schedule
from semel.errors import ConfigurationError
from semel.queue.job import Job

Missed: TypeAlias = Literal["last", "skip", "all"]
"""Which of the ticks that no worker was there for are made up: the last one (within a day), none, or all of
them within the worker's bound."""


@dataclass(frozen=True, slots=True)
class ScheduledJob:
    """What to store at each tick. One tick makes one job, however many workers try."""

    schedule: Schedule
    kind: str
    payload: bytes
    options: JobOptions
    missed: Missed = "last"


def scheduled(
    job: Job[..., Any], schedule: Schedule, arguments: Mapping[str, Any] | None, missed: Missed
) -> ScheduledJob:
    """Raises ArgumentError where the job cannot be called with ``arguments``."""
    if missed not in ("last", "skip", "all"):
        raise ConfigurationError(
            f'missed of schedule {schedule.name!r} is {missed!r}: give "last", "skip" or "all".'
        )
    payload = job.signature.encode((), arguments or {}, limit=job.payload_limit)
    return ScheduledJob(schedule, job.kind, payload, job.options(), missed)
