"""All ways in to a guarded function that its code shows: jobs, schedules, Celery tasks, consumers of SQS, the plain call."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from types import ModuleType
from typing import Any

from semel.core.durations import describe, to_timedelta
from semel.doctor.application_reading import retry_horizon
from semel.errors import ConfigurationError
from semel.guard.behind import guarded_behind
from semel.guard.guarded import Guarded
from semel.note.page import code
from semel.queue.app import App
from semel.queue.job import Job


class Kind(StrEnum):
    """Which queue a way in belongs to."""

    CALL = "call"
    SEMEL = "semel"
    CELERY = "celery"
    SQS = "sqs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way in."""

    kind: Kind
    text: str
    retries: timedelta | None = None
    """From the first attempt to the last, as far as the code says it."""
    kept: timedelta | None = None
    """How long the queue keeps a message after that, at most; None where nothing says it."""
    transport: str = ""
    """Celery's."""
    acks_late: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a note is about."""

    guarded: Guarded[..., Any]
    name: str
    """Where the function is, as Python names it."""
    ways: tuple[Way, ...]
    celery_apps: tuple[Any, ...] = field(default=(), repr=False)
    apps: tuple[App, ...] = field(default=(), repr=False)
    shared_with: tuple[str, ...] = ()
    """Other guarded functions of the same job type, whose records are the same."""


def find_subject(found: object, modules: Iterable[ModuleType]) -> Subject:
    """What is guarded behind an object, and the ways in that these modules (and the function's own) show.

    Raises ConfigurationError where nothing guards it, or several functions are behind it.
    """
    guarded = find_guard(found)
    own = [sys.modules.get(getattr(guarded.function, "__module__", "") or "")]
    looked = list({id(each): each for each in [*own, *modules] if each is not None}.values())
    jobs = list(_jobs(guarded, found, looked))
    tasks = list(_tasks(guarded, found, looked))
    by_sqs = list(_of_sqs(guarded, found, looked))
    apps = {id(app): app for app in _apps(looked)}
    ways: list[Way] = []
    if not jobs:  # a guarded job takes what only a worker has
        ways.append(
            Way(
                kind=Kind.CALL,
                text=f"a plain call of {code(_name(guarded))}, in any process; nothing calls it again",
            )
        )
    ways += [way for job in jobs for way in _ways_of_job(job, apps.values())]
    ways += [way for task in tasks for way in _ways_of_task(task)]
    ways += [_way_of_sqs(place, value) for place, value in by_sqs]
    return Subject(
        guarded=guarded,
        name=_name(guarded),
        ways=tuple(ways),
        celery_apps=tuple({id(task.app): task.app for task in tasks}.values()),
        apps=tuple(app for app in apps.values() if any(app.jobs.get(job.kind) is job for job in jobs)),
        shared_with=tuple(sorted(_shared(guarded, looked))),
    )


def find_guard(found: object) -> Guarded[..., Any]:
    """What guards an object: itself, a job's, a Celery task's, or that of the only function that SQS calls by it."""
    if isinstance(found, Job) and found.guard is None:
        raise ConfigurationError(
            f"The job {found.kind} is not guarded.",
            remedy="Declare it with @app.job(once=once.operation(…)).",
        )
    behind = guarded_behind(found)
    if len(behind) == 1:
        return behind[0]
    if behind:
        names = ", ".join(sorted(_name(each) for each in behind))
        raise ConfigurationError(
            f"What was named calls {len(behind)} guarded functions: {names}.", remedy="Name one of them."
        )
    raise ConfigurationError(
        f"What was named is a {type(found).__name__}, and nothing guards it.",
        remedy="Name a function under @once.operation(…), a job with once=, a guarded Celery task, "
        "or a consumer or handler of SQS.",
    )


def _name(guarded: Guarded[..., Any]) -> str:
    function = guarded.function
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', function)}"


def _values(modules: Iterable[ModuleType]) -> Iterator[tuple[str, Any]]:
    for module in modules:
        for name, value in sorted(vars(module).items()):
            if not name.startswith("__"):
                yield f"{module.__name__}.{name}", value


def _apps(modules: Iterable[ModuleType]) -> Iterator[App]:
    return (value for _, value in _values(modules) if isinstance(value, App))


def _jobs(
    guarded: Guarded[..., Any], found: object, modules: Iterable[ModuleType]
) -> Iterator[Job[..., Any]]:
    apps = {id(app): app for app in _apps(modules)}.values()
    candidates = [found, *(job for app in apps for _, job in sorted(app.jobs.items()))]
    candidates += [value for _, value in _values(modules)]
    jobs = {id(each): each for each in candidates if isinstance(each, Job) and each.guard is guarded}
    yield from jobs.values()


def _ways_of_job(job: Job[..., Any], apps: Iterable[App]) -> Iterator[Way]:
    horizon = retry_horizon(job)
    app = next((each for each in apps if each.jobs.get(job.kind) is job), None)
    kept = None if app is None else app.settings.keep_failed
    limit = "no time-out" if job.timeout is None else f"time-out {describe(job.timeout)}"
    text = (
        f"job {code(job.kind)} of the semel queue {code(job.queue)}, by enqueue or by plain SQL: "
        f"{job.max_attempts} attempts, "
        f"within {describe(horizon)} of failing; {limit}"
    )
    yield Way(kind=Kind.SEMEL, text=text, retries=horizon, kept=kept)
    for name, planned in sorted(() if app is None else app.schedules.items()):
        if planned.kind == job.kind:
            schedule = planned.schedule
            tick = schedule.expression or f"every {describe(to_timedelta(schedule.every or 0, name='every'))}"
            what = f"schedule {code(name)}: {code(tick)} in {code(schedule.tz)}, the job {code(job.kind)}"
            yield Way(kind=Kind.SEMEL, text=what)


def _tasks(guarded: Guarded[..., Any], found: object, modules: Iterable[ModuleType]) -> Iterator[Any]:
    celery = sys.modules.get("celery")
    if celery is None:
        return
    values = [found, *(value for _, value in _values(modules))]
    apps = {id(each): each for each in values if isinstance(each, celery.Celery)}.values()
    tasks = [each for each in values if isinstance(each, celery.Task)]
    tasks += [task for app in apps for _, task in sorted(app.tasks.items())]
    seen: set[str] = set()
    for task in tasks:
        if guarded in guarded_behind(task) and task.name not in seen:
            seen.add(task.name)
            yield task


def _ways_of_task(task: Any) -> Iterator[Way]:
    from semel.doctor.celery_reading import read_celery

    numbers = read_celery(task.app)
    own = next((each for each in numbers.tasks if each.name == task.name), None)
    queue = getattr(task, "queue", None) or task.app.conf.task_default_queue
    late = bool(task.acks_late)
    text = (
        f"Celery task {code(task.name)}, queue {code(queue)} unless routed elsewhere, transport {code(numbers.transport)}; "
        f"acks_late {'on' if late else 'off'}, reject_on_worker_lost {'on' if task.reject_on_worker_lost else 'off'}"
    )
    retries = None
    if own is not None and task.max_retries is not None and own.retry_delay:
        retries = own.retry_delay * int(task.max_retries)
    yield Way(kind=Kind.CELERY, text=text, retries=retries, transport=numbers.transport, acks_late=late)
    planned: Mapping[str, Any] = task.app.conf.beat_schedule or {}
    for name, entry in sorted(planned.items()):
        if entry.get("task") == task.name:
            tick = f"beat entry {code(name)}: {code(entry.get('schedule'))}, the task {code(task.name)}"
            yield Way(kind=Kind.CELERY, text=tick, transport=numbers.transport, acks_late=late)


def _of_sqs(
    guarded: Guarded[..., Any], found: object, modules: Iterable[ModuleType]
) -> Iterator[tuple[str, Any]]:
    """What SQS's messages come to the function by: consumers, handlers of own loops and of Lambda."""
    sqs = sys.modules.get("semel.adapters.sqs")
    if sqs is None:
        return
    seen: set[int] = set()
    for place, value in [*_values(modules), ("the named object", found)]:
        is_sqs = isinstance(getattr(value, "semel_way", None), sqs.SqsWay)
        if is_sqs and id(value) not in seen and guarded in guarded_behind(value):
            seen.add(id(value))
            yield place, value


def _way_of_sqs(place: str, value: Any) -> Way:
    way = value.semel_way
    queue = "a queue of Amazon SQS" if way.queue is None else f"the Amazon SQS queue {code(way.queue)}"
    text = f"messages of {queue}, {way.how} {code(place)}"
    return Way(kind=Kind.SQS, text=text, kept=timedelta(days=28))


def _shared(guarded: Guarded[..., Any], modules: Iterable[ModuleType]) -> Iterator[str]:
    seen = {id(guarded)}
    for _, value in _values(modules):
        try:
            other = find_guard(value)
        except ConfigurationError:
            continue
        if id(other) not in seen and other.declaration.job_type == guarded.declaration.job_type:
            seen.add(id(other))
            yield _name(other)
