"""What is checked of a Celery application: pure functions over its numbers (docs/doctor.md has each code)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from semel.core.durations import describe
from semel.doctor.finding import Finding, Severity

VISIBLE_FOR: Final[Mapping[str, timedelta]] = {
    "redis": timedelta(hours=1),
    "sqs": timedelta(minutes=30),
}
"""Transports whose messages come again after a while, and after how long unless it is set."""
CONSUMER_TIMEOUT: Final = timedelta(minutes=30)
"""RabbitMQ's own, unless it is set there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskNumbers:
    """One guarded task."""

    name: str
    lease: timedelta
    longest_run: timedelta
    extend: bool = False
    in_row: bool = False
    keep: timedelta = timedelta(days=90)
    keep_message: bool = True
    acks_late: bool = True
    reject_on_worker_lost: bool = True
    acks_on_failure: bool = True
    time_limit: timedelta | None = None
    soft_time_limit: timedelta | None = None
    retry_delay: timedelta = timedelta(0)
    """The longest that a retry is put off, as far as it is declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CeleryNumbers:
    """One application."""

    transport: str
    """``redis``, ``sqs``, ``amqp`` …"""
    visibility_places: Mapping[str, timedelta] = field(default_factory=dict)
    """Where the visibility time-out is set, and to what."""
    prefetch_multiplier: int = 4
    always_eager: bool = False
    deduplicates: bool = False
    eta_horizon: timedelta | None = None
    """How far ahead tasks are scheduled, as the person said."""
    consumer_timeout: timedelta = CONSUMER_TIMEOUT
    tasks: tuple[TaskNumbers, ...] = ()

    @property
    def visibility(self) -> timedelta | None:
        """What counts: the broker's transport options, else the transport's own; None where nothing comes again by time."""
        own = VISIBLE_FOR.get(self.transport)
        return None if own is None else self.visibility_places.get(COUNTS, own)


COUNTS: Final = "broker_transport_options"


def check(app: CeleryNumbers) -> list[Finding]:
    """All that is found of an application."""
    found = [*_application(app)]
    for task in app.tasks:
        found += [*_acknowledgement(task), *_limits(task)]
        if app.visibility is not None:
            found += _visibility(app, task, app.visibility)
        if app.transport == "amqp":
            found += _consumer_timeout(app, task)
    return found


def _application(app: CeleryNumbers) -> Iterator[Finding]:
    if not app.tasks:
        yield _warn(
            "celery-nothing-guarded",
            "the application",
            "0 guarded tasks",
            "No task of it is guarded: each runs as often as it is delivered.",
            "Guard the ones whose effect must not happen twice; and import their modules in the application.",
        )
    if app.always_eager:
        yield _warn(
            "celery-eager",
            "the application",
            "task_always_eager is set",
            "Tasks run in whoever calls them; an operation in progress is raised there, and nothing is delivered again.",
            "Set it in tests only.",
        )
    if app.visibility is not None:
        yield from _places(app, app.visibility)
    if app.deduplicates:
        yield _note(
            "celery-deduplicates",
            "the application",
            "worker_deduplicate_successful_tasks is on",
            "It looks at redelivered messages whose result was stored, and at nothing else; the record decides.",
            "Nothing: it does no harm, and is no guard.",
        )
    if app.tasks:
        yield _note(
            "celery-next-steps",
            "every guarded task",
            f"{len(app.tasks)} guarded tasks",
            "A repeat succeeds, and so dispatches the links and the next step of its chain or chord again.",
            "Guard the steps that come after a guarded one too, or let them be harmless.",
        )


def _places(app: CeleryNumbers, visibility: timedelta) -> Iterator[Finding]:
    told = (
        ", ".join(f"{place} {describe(value)}" for place, value in app.visibility_places.items()) or "unset"
    )
    if COUNTS not in app.visibility_places and app.visibility_places:
        yield _warn(
            "celery-visibility-place",
            "the broker",
            f"{told}; {COUNTS}: unset, so {describe(visibility)} counts",
            "The visibility time-out is set where the broker's transport does not read it.",
            f"Set visibility_timeout in {COUNTS}.",
        )
    elif len(set(app.visibility_places.values())) > 1:
        yield _warn(
            "celery-visibility-place",
            "the broker",
            f"{told}; {COUNTS} counts: {describe(visibility)}",
            "The visibility time-out is set to different values.",
            "Set them alike.",
        )
    yield _note(
        "celery-visibility-shared",
        "the broker",
        f"{told}; here {describe(visibility)} counts",
        "Every application on the same broker database gives back everybody's messages by its own time-out: the shortest "
        "one counts for all. Those of other applications cannot be seen from here.",
        "Set it alike in all of them, or give each a database (or a global_keyprefix) of its own.",
    )


def _acknowledgement(task: TaskNumbers) -> Iterator[Finding]:
    if not task.acks_late:
        lost = "" if task.keep_message else " Its message is not kept, so no command can send it again."
        yield _warn(
            "celery-early-ack",
            task.name,
            "acks_late is off",
            f"A message is acknowledged before its task runs: a worker that is killed loses it.{lost} The operation stays "
            "claimed, and is listed as stale.",
            "acks_late=True, reject_on_worker_lost=True: the guard makes delivering again harmless.",
        )
        return
    if not task.reject_on_worker_lost:
        yield _warn(
            "celery-worker-lost",
            task.name,
            "acks_late is on, reject_on_worker_lost off",
            "Celery acknowledges the message of a prefork child that was killed: it is lost, and its operation is listed as "
            "stale.",
            "reject_on_worker_lost=True. A task that kills its workers is held after max_takeovers.",
        )
    if not task.acks_on_failure:
        yield _note(
            "celery-failure-rejects",
            task.name,
            "acks_on_failure_or_timeout is off",
            "A task that fails for good (held, another payload) has its message rejected: dropped, or dead-lettered.",
            "Nothing, where a dead-letter exchange takes them.",
        )


def _limits(task: TaskNumbers) -> Iterator[Finding]:
    if task.in_row:
        return
    hard, soft = task.time_limit, task.soft_time_limit
    if hard is not None and soft is not None and soft >= hard:
        yield _error(
            "celery-soft-limit",
            task.name,
            f"soft time limit {describe(soft)}, hard {describe(hard)}",
            "The hard limit kills the task before the soft one can end it.",
            "Set the soft limit some seconds below the hard one.",
        )
    longest = task.longest_run if task.extend else task.lease
    if hard is None:
        yield _warn(
            "celery-no-limit",
            task.name,
            f"no time limit; longest run {describe(task.longest_run)}, lease {describe(task.lease)}",
            "Nothing ends a run that takes longer than was declared: its lease ends while it acts, and the next one gets "
            "the policy.",
            f"time_limit={longest.total_seconds():g} or less (prefork only; elsewhere bound the outside call).",
        )
    elif hard > longest:
        yield _error(
            "celery-limit-over-lease",
            task.name,
            f"time limit {describe(hard)}, {'longest run' if task.extend else 'lease'} {describe(longest)}",
            "A run may outlive its lease: it is taken for dead while it acts.",
            "Lower time_limit, or raise the lease (and longest_run).",
        )
    elif soft is None:
        yield _note(
            "celery-soft-limit",
            task.name,
            f"time limit {describe(hard)}, no soft one",
            "The hard limit kills without a word: the operation waits for the end of its lease.",
            "A soft limit some seconds before it lets the task say at once whether it had acted.",
        )


def _visibility(app: CeleryNumbers, task: TaskNumbers, visibility: timedelta) -> Iterator[Finding]:
    if task.acks_late and task.longest_run > visibility:
        yield _warn(
            "celery-visibility-run",
            task.name,
            f"longest run {describe(task.longest_run)}, visibility time-out {describe(visibility)}",
            "The broker delivers it again while it runs, each time that the time-out passes; the copies are told that it "
            "is in progress.",
            "Raise visibility_timeout over the longest run.",
        )
    ahead = max(app.eta_horizon or timedelta(0), task.retry_delay)
    if ahead > visibility:
        yield _warn(
            "celery-visibility-eta",
            task.name,
            f"waits up to {describe(ahead)} for its time, visibility time-out {describe(visibility)}",
            "What waits for its time is unacknowledged in a worker: it comes again each time the time-out passes, and all "
            "copies start at once.",
            "Raise visibility_timeout over it, or keep far dates in a table of your own.",
        )
    waits = task.longest_run * app.prefetch_multiplier + task.retry_delay
    if app.prefetch_multiplier == 0 or (app.prefetch_multiplier > 1 and waits > visibility):
        shown = "without a limit" if app.prefetch_multiplier == 0 else f"{app.prefetch_multiplier} x"
        yield _warn(
            "celery-prefetch",
            task.name,
            f"prefetch {shown} {describe(task.longest_run)}, retried after up to {describe(task.retry_delay)}, "
            f"visibility time-out {describe(visibility)}",
            "Messages that a worker took in advance grow old in its memory, and come again before they have begun.",
            "worker_prefetch_multiplier=1.",
        )
    if task.acks_late and visibility > task.lease:
        yield _note(
            "celery-recovery",
            task.name,
            f"lease {describe(task.lease)}, visibility time-out {describe(visibility)}",
            "When a whole worker is killed, its operation is stale after the lease, and nobody delivers it before the "
            "visibility time-out.",
            "Nothing; or a shorter time-out, still over the longest run and the farthest date.",
        )
    if ahead > task.keep:
        yield _error(
            "celery-retention",
            task.name,
            f"waits up to {describe(ahead)}, its record is kept for {describe(task.keep)}",
            "A copy may come when the record is gone, and acts again.",
            "keep= over the farthest date.",
        )


def _consumer_timeout(app: CeleryNumbers, task: TaskNumbers) -> Iterator[Finding]:
    ahead = max(app.eta_horizon or timedelta(0), task.retry_delay)
    held = max(ahead, task.longest_run if task.acks_late else timedelta(0))
    if held > app.consumer_timeout:
        yield _warn(
            "celery-consumer-timeout",
            task.name,
            f"unacknowledged for up to {describe(held)}, consumer_timeout {describe(app.consumer_timeout)}",
            "RabbitMQ closes the worker's channel and delivers all that it had again.",
            "Raise consumer_timeout in RabbitMQ over it (and tell this check: --consumer-timeout).",
        )


def _error(code: str, subject: str, figure: str, happened: str, mend: str) -> Finding:
    return _find(Severity.ERROR, code, subject, figure, happened, mend)


def _warn(code: str, subject: str, figure: str, happened: str, mend: str) -> Finding:
    return _find(Severity.WARNING, code, subject, figure, happened, mend)


def _note(code: str, subject: str, figure: str, happened: str, mend: str) -> Finding:
    return _find(Severity.NOTE, code, subject, figure, happened, mend)


def _find(severity: Severity, code: str, subject: str, figure: str, happened: str, mend: str) -> Finding:
    return Finding(code=code, severity=severity, subject=subject, figure=figure, happened=happened, mend=mend)
