"""Reads the numbers of a Celery application: its configuration, and what guards its tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from semel.core.effects import ProviderKey, Row
from semel.doctor.celery import COUNTS, CeleryNumbers, TaskNumbers
from semel.errors import DatabaseUnreachable

if TYPE_CHECKING:
    from semel.guard.guarded import Guarded


def read_celery(app: Any, **told: Any) -> CeleryNumbers:
    """The numbers of an application whose task modules are imported. ``told`` is what no configuration says."""
    conf = app.conf
    return CeleryNumbers(
        transport=_transport(app),
        visibility_places=dict(_visibility_places(conf)),
        prefetch_multiplier=int(conf.worker_prefetch_multiplier),
        always_eager=bool(conf.task_always_eager),
        deduplicates=bool(conf.worker_deduplicate_successful_tasks),
        tasks=tuple(_tasks(app)),
        **{name: value for name, value in told.items() if value is not None},
    )


def load_tasks(app: Any) -> None:
    """Import the modules that the application's workers import, so that all of its tasks are known."""
    app.loader.import_default_modules()
    app.finalize()


def _transport(app: Any) -> str:
    """Without a connection: the scheme of the broker's URL, less what is said about its kind."""
    connection = app.connection_for_write()
    name = str(connection.transport_cls).partition("+")[0].lower()
    return {
        "rediss": "redis",
        "sentinel": "redis",
        "pyamqp": "amqp",
        "amqps": "amqp",
        "librabbitmq": "amqp",
    }.get(name, name)


def _visibility_places(conf: Any) -> Iterator[tuple[str, timedelta]]:
    for place in (COUNTS, "result_backend_transport_options"):
        options: Mapping[str, Any] = getattr(conf, place, None) or {}
        if options.get("visibility_timeout") is not None:
            yield place, timedelta(seconds=float(options["visibility_timeout"]))
    if conf.get("visibility_timeout") is not None:
        yield "visibility_timeout", timedelta(seconds=float(conf["visibility_timeout"]))


def _tasks(app: Any) -> Iterator[TaskNumbers]:
    from semel.adapters.celery import find_guarded

    for name, task in sorted(app.tasks.items()):
        guarded = find_guarded(task)
        if guarded is not None:
            yield _task(name, task, guarded, app.conf)


def _task(name: str, task: Any, guarded: Guarded[..., Any], conf: Any) -> TaskNumbers:
    declaration = guarded.declaration
    return TaskNumbers(
        name=name,
        lease=declaration.lease,
        longest_run=declaration.longest_run,
        extend=declaration.extend,
        in_row=isinstance(declaration.effect, Row),
        keep=declaration.keep,
        valid_for=declaration.effect.window if isinstance(declaration.effect, ProviderKey) else None,
        keep_message=declaration.keep_message,
        acks_late=bool(task.acks_late),
        reject_on_worker_lost=bool(task.reject_on_worker_lost),
        acks_on_failure=task.acks_on_failure_or_timeout is not False,
        time_limit=_seconds(task.time_limit, conf.task_time_limit),
        soft_time_limit=_seconds(task.soft_time_limit, conf.task_soft_time_limit),
        waits_for_database=_waits_for_database(task),
        retry_delay=_retry_delay(task),
    )


def _waits_for_database(task: Any) -> bool:
    left_out = tuple(getattr(task, "dont_autoretry_for", None) or ())
    retried = tuple(getattr(task, "autoretry_for", None) or ())
    return issubclass(DatabaseUnreachable, retried) and not issubclass(DatabaseUnreachable, left_out)


def _seconds(own: Any, configured: Any) -> timedelta | None:
    found = own if own is not None else configured
    return None if found is None else timedelta(seconds=float(found))


def _retry_delay(task: Any) -> timedelta:
    """The longest delay that the task declares for its retries; none where it has none by itself."""
    told = dict(getattr(task, "retry_kwargs", None) or {}).get("countdown")
    if not getattr(task, "autoretry_for", None):
        return timedelta(0)
    if getattr(task, "retry_backoff", False):
        return timedelta(seconds=float(getattr(task, "retry_backoff_max", 600)))
    return timedelta(seconds=float(task.default_retry_delay if told is None else told))
