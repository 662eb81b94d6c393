"""The jobs and schedules of one application, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from semel.core.schedule import Schedule
from semel.errors import ConfigurationError
from semel.queue.job import Job
from semel.queue.recurring import Missed, ScheduledJob, scheduled
from semel.store.pools import Database


@dataclass(frozen=True, slots=True)
class Plan:
    """One ``@app.schedule``, until its job is known: decorators run from the bottom up."""

    expression: str | None
    every: Any
    tz: str
    name: str | None
    arguments: Mapping[str, Any] | None
    missed: Missed


@dataclass(slots=True)
class Registry:
    """Filled while the application's modules are imported; read by workers."""

    _jobs: dict[str, Job[..., Any]] = field(default_factory=dict)
    _schedules: dict[str, ScheduledJob] = field(default_factory=dict)
    _waiting: dict[Callable[..., Any], list[Plan]] = field(default_factory=dict)
    """Plans on functions that are no job yet."""

    @property
    def jobs(self) -> Mapping[str, Job[..., Any]]:
        return MappingProxyType(self._jobs)

    @property
    def schedules(self) -> Mapping[str, ScheduledJob]:
        if self._waiting:
            function = next(iter(self._waiting))
            raise ConfigurationError(
                f"{function.__qualname__} has an @app.schedule but no @app.job.",
                remedy="Add @app.job above it.",
            )
        return MappingProxyType(self._schedules)

    def add(self, job: Job[..., Any]) -> None:
        """Take a job, and the schedules that were written below its ``@app.job``."""
        known = self._jobs.get(job.kind)
        if known is not None:
            raise ConfigurationError(
                f"Two jobs are of the kind {job.kind!r}: {_place(known)} and {_place(job)}.",
                remedy='Rename one, or name its kind: @app.job(kind="…").',
            )
        self._jobs[job.kind] = job
        for plan in self._waiting.pop(job.function, ()):
            self.add_schedule(job, plan)

    def wait(self, function: Callable[..., Any], plan: Plan) -> None:
        """Keep a schedule for a function until `add` brings its job."""
        self._waiting.setdefault(function, []).append(plan)

    def add_schedule(self, job: Job[..., Any], plan: Plan) -> None:
        """Take a schedule of a job that is known."""
        if self._jobs.get(job.kind) is not job:
            raise ConfigurationError(f"{job.kind} is a job of another application.")
        name = job.kind if plan.name is None else plan.name
        if name in self._schedules:
            raise ConfigurationError(
                f"Two schedules are called {name!r}.", remedy='Give each a name of its own: name="…".'
            )
        schedule = Schedule(name, expression=plan.expression, every=plan.every, tz=plan.tz)
        self._schedules[name] = scheduled(job, schedule, plan.arguments, plan.missed)

    def rebound(self, database: Database, payload_limit: int) -> Registry:
        """The same jobs and schedules, over another database."""
        jobs = {
            kind: replace(job, database=database, payload_limit=payload_limit)
            for kind, job in self._jobs.items()
        }
        return Registry(jobs, dict(self.schedules))


def _place(job: Job[..., Any]) -> str:
    return f"{job.function.__module__}.{getattr(job.function, '__qualname__', job.function)}"
