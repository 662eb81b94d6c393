"""What is checked of a Celery application: pure functions over its numbers (docs/doctor.md has each code)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from semel.core.durations import describe
from semel.doctor.celery_words import find
from semel.doctor.finding import Finding

VISIBLE_FOR: Final[Mapping[str, timedelta]] = MappingProxyType(
    {"redis": timedelta(hours=1), "sqs": timedelta(minutes=30)}
)
"""Transports whose messages come again after a while, and after how long unless it is set."""
COUNTS: Final = "broker_transport_options"
"""The place that the broker's transport reads."""
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
    waits_for_database: bool = True
    """Whether ``autoretry_for`` covers a database of the guard that is out of reach."""
    retry_delay: timedelta = timedelta(0)
    """The longest that a retry is put off, as far as it is declared."""
    valid_for: timedelta | None = None
    """Of a `ProviderKey`."""


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


def check(app: CeleryNumbers) -> list[Finding]:
    """All that is found of an application."""
    found = [*_application(app)]
    for task in app.tasks:
        found += [*_acknowledgement(task), *_limits(task)]
        if app.visibility is not None:
            found += _visibility(app, task, app.visibility)
        if app.transport == "amqp":
            found += _consumer_timeout(app, task)
        if _ahead(app, task) > task.keep:
            figure = (
                f"waits up to {describe(_ahead(app, task))}, its record is kept for {describe(task.keep)}"
            )
            found.append(find("celery-retention", task.name, figure))
        found += _provider(app, task)
    return found


def _provider(app: CeleryNumbers, task: TaskNumbers) -> Iterator[Finding]:
    """A second attempt comes when a retry does, or when the broker delivers again what a dead worker had."""
    visibility = app.visibility if task.acks_late and app.visibility is not None else timedelta(0)
    again = max(visibility, task.retry_delay)
    if task.valid_for is not None and again and task.valid_for <= again + task.longest_run:
        figure = (
            f"valid_for {describe(task.valid_for)}, delivered again after up to {describe(again)}, longest run "
            f"{describe(task.longest_run)}"
        )
        yield find("celery-provider-window", task.name, figure)


def _application(app: CeleryNumbers) -> Iterator[Finding]:
    everything = "the application"
    if not app.tasks:
        yield find("celery-nothing-guarded", everything, "guarded tasks: 0")
    if app.always_eager:
        yield find("celery-eager", everything, "task_always_eager is set")
    if app.visibility is not None:
        yield from _places(app, app.visibility)
    if app.deduplicates:
        yield find("celery-deduplicates", everything, "worker_deduplicate_successful_tasks is on")
    if app.tasks:
        yield find("celery-next-steps", everything, f"guarded tasks: {len(app.tasks)}")


def _places(app: CeleryNumbers, visibility: timedelta) -> Iterator[Finding]:
    told = (
        ", ".join(f"{place} {describe(value)}" for place, value in app.visibility_places.items()) or "unset"
    )
    figure = f"visibility time-out: {told}; here {describe(visibility)} counts"
    if any(value != visibility for value in app.visibility_places.values()):
        yield find("celery-visibility-place", "the broker", figure)
    yield find("celery-visibility-shared", "the broker", figure)


def _acknowledgement(task: TaskNumbers) -> Iterator[Finding]:
    if not task.waits_for_database and (task.acks_on_failure or not task.acks_late):
        yield find("celery-database-lost", task.name, "autoretry_for has no DatabaseUnreachable")
    if not task.acks_late:
        kept = "" if task.keep_message else "; its message is not kept, so nothing can send it again"
        yield find("celery-early-ack", task.name, f"acks_late is off{kept}")
        return
    if not task.reject_on_worker_lost:
        yield find("celery-worker-lost", task.name, "acks_late is on, reject_on_worker_lost off")
    if not task.acks_on_failure:
        yield find("celery-failure-rejects", task.name, "acks_on_failure_or_timeout is off")


def _limits(task: TaskNumbers) -> Iterator[Finding]:
    if task.in_row:
        return
    hard, soft = task.time_limit, task.soft_time_limit
    lasts, what = (task.longest_run, "longest run") if task.extend else (task.lease, "lease")
    if hard is None:
        figure = f"no time limit; longest run {describe(task.longest_run)}, lease {describe(task.lease)}"
        yield find("celery-no-limit", task.name, figure)
        return
    if hard > lasts:
        figure = f"time limit {describe(hard)}, {what} {describe(lasts)}"
        yield find("celery-limit-over-lease", task.name, figure)
    if soft is None:
        yield find("celery-no-soft-limit", task.name, f"time limit {describe(hard)}, no soft one")
    elif soft >= hard:
        figure = f"soft time limit {describe(soft)}, hard {describe(hard)}"
        yield find("celery-soft-limit", task.name, figure)


def _visibility(app: CeleryNumbers, task: TaskNumbers, visibility: timedelta) -> Iterator[Finding]:
    over = f"visibility time-out {describe(visibility)}"
    run, ahead, prefetch = task.longest_run, _ahead(app, task), app.prefetch_multiplier
    if task.acks_late and run > visibility:
        yield find("celery-visibility-run", task.name, f"longest run {describe(run)}, {over}")
    if ahead > visibility:
        yield find("celery-visibility-eta", task.name, f"waits up to {describe(ahead)} for its time, {over}")
    if prefetch == 0 or (prefetch > 1 and run * prefetch + task.retry_delay > visibility):
        shown = "without a limit," if prefetch == 0 else f"{prefetch} x"
        figure = f"prefetch {shown} {describe(run)}, retried after up to {describe(task.retry_delay)}, {over}"
        yield find("celery-prefetch", task.name, figure)
    if task.acks_late and visibility > task.lease:
        yield find("celery-recovery", task.name, f"lease {describe(task.lease)}, {over}")


def _consumer_timeout(app: CeleryNumbers, task: TaskNumbers) -> Iterator[Finding]:
    held = max(_ahead(app, task), task.longest_run if task.acks_late else timedelta(0))
    if held > app.consumer_timeout:
        figure = (
            f"unacknowledged for up to {describe(held)}, consumer_timeout {describe(app.consumer_timeout)}"
        )
        yield find("celery-consumer-timeout", task.name, figure)


def _ahead(app: CeleryNumbers, task: TaskNumbers) -> timedelta:
    """The longest that a message of the task waits for its time."""
    return max(app.eta_horizon or timedelta(0), task.retry_delay)
