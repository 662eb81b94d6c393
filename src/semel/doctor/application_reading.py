"""Reads the numbers of guarded functions and of an application of the semel queue from their declarations."""

from __future__ import annotations

import inspect
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from semel.core.durations import LONGEST, to_timedelta
from semel.core.retry import Backoff, RetryPolicy
from semel.doctor.application import ApplicationNumbers, GuardNumbers, JobNumbers
from semel.queue.guarding import GuardedPolicy

if TYPE_CHECKING:
    from semel.guard.declaration import KeySource
    from semel.guard.guarded import Guarded
    from semel.queue.app import App
    from semel.queue.job import Job


def read_application(app: App) -> ApplicationNumbers:
    """The numbers of an application whose modules are imported. Connects to nothing."""
    jobs = tuple(_job(job) for _, job in sorted(app.jobs.items()) if not job.relayed)
    return ApplicationNumbers(settings=app.settings, jobs=jobs)


def read_guard(guarded: Guarded[..., Any]) -> GuardNumbers:
    """The numbers of one guarded function."""
    declaration = guarded.declaration
    return GuardNumbers(
        name=declaration.job_type,
        effect=declaration.effect,
        lease=declaration.lease,
        longest_run=declaration.longest_run,
        extend=declaration.extend,
        explicit=declaration.acting == "explicit",
        keep=declaration.keep,
        key_fields=key_fields(declaration.key),
        secret=declaration.secret is not None,
        label=declaration.label,
    )


def key_fields(source: KeySource) -> tuple[str, ...]:
    """The arguments that a key is made of; of a function of them, its own parameters."""
    if isinstance(source, str):
        return (source,)
    if not callable(source):
        return tuple(source)
    try:
        return tuple(inspect.signature(source).parameters)
    except (TypeError, ValueError):
        return ()


def retry_horizon(job: Job[..., Any]) -> timedelta:
    """From the first attempt to the last, when each fails and each wait is the longest; what is a function of its own counts
    as the default backoff."""
    policy: Any = job.retry
    if isinstance(policy, GuardedPolicy):
        policy = policy.policy
    waits = policy.backoff if isinstance(policy, RetryPolicy) else Backoff()
    cap = to_timedelta(waits.cap, name="cap")
    total = timedelta(0)
    for attempt in range(1, job.max_attempts):
        wait = waits.delay(attempt, lambda: 0.0)
        if wait >= cap:
            rest = (job.max_attempts - attempt) * cap.total_seconds()
            total += timedelta(seconds=min(rest, LONGEST.total_seconds()))
            break
        total += wait
    return total


def _job(job: Job[..., Any]) -> JobNumbers:
    return JobNumbers(
        kind=job.kind,
        guard=None if job.guard is None else read_guard(job.guard),
        in_transaction=job.transaction,
        timeout=job.timeout,
        retries=retry_horizon(job),
    )
