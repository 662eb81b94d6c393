"""What `semel doctor` looks at: loads and reads each thing that was named, and has it checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from semel.cli.resending import load_celery, load_consumer

if TYPE_CHECKING:
    from semel.core.measured import Runs
    from semel.doctor.finding import Finding
    from semel.guard.guarded import Guarded
    from semel.queue.app import App

Limits = tuple[str | None, str | None, str | None, str | None, str | None, str | None]
"""As typed: lease, longest run, the provider's window, keep, eta horizon, consumer time-out."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What to look at."""

    database: str | None
    schema: str | None
    app: str | None
    celery: str | None
    sqs: str | None
    sidekiq: Path | None
    sidekiq_redis: str | None
    guarded: tuple[str, ...] = ()


def examine(
    asked: Asked, limits: Limits, running: tuple[int, int, int], environment: str
) -> tuple[list[str], list[Finding]]:
    """What was looked at, and what was found. ``running`` is how many workers, children of each and clients there are."""
    from semel.errors import ConfigurationError

    lease, longest_run, window, keep, eta, consumer = (_duration(each) for each in limits)
    checked: list[str] = []
    findings: list[Finding] = []
    app = None if asked.app is None else _load_app(asked.app)
    measured: Mapping[str, Runs] = {}
    if asked.database:
        checked.append(f"database {_without_password(asked.database)}")
        kept = keep if app is None or keep is not None else app.settings.keep_operations
        found, measured = _check_database(asked, kept, running, app)
        findings += found
    if app is not None:
        checked.append(f"app {asked.app}")
        findings += _check_app(app, measured)
    for each in asked.guarded:
        checked.append(f"guarded {each}")
        findings += _check_guarded(each, measured)
    if asked.celery:
        checked.append(f"celery {asked.celery}")
        findings += _check_celery(asked.celery, eta, consumer, measured)
    if asked.sqs:
        checked.append(f"sqs {asked.sqs}")
        findings += _check_sqs(asked.sqs, measured)
    if asked.sidekiq or asked.sidekiq_redis:
        told = {"lease": lease, "longest_run": longest_run, "valid_for": window, "keep": keep}
        checked.append(
            f"sidekiq {' '.join(map(str, filter(None, (asked.sidekiq, _shown(asked.sidekiq_redis)))))}"
        )
        findings += _check_sidekiq(asked, environment, told)
    if not checked:
        raise ConfigurationError(
            "There is nothing to look at.",
            remedy="Say what: semel doctor --celery shop.tasks:app, or --database URL",
        )
    return checked, findings


def _duration(text: str | None) -> timedelta | None:
    from semel.core.durations import to_timedelta

    return None if text is None else to_timedelta(text, name="An option")


def _shown(url: str | None) -> str | None:
    return None if url is None else _without_password(url)


def _without_password(url: str) -> str:
    """The URL without who and by which word; a DSN of words is not shown."""
    if "://" not in url:
        return url if "=" not in url else "(given)"
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def _load_app(name: str) -> App:
    from semel.cli.place import load_app

    return load_app(name)


def _check_database(
    asked: Asked, keep: timedelta | None, running: tuple[int, int, int], app: App | None
) -> tuple[list[Finding], dict[str, Runs]]:
    from semel.cli.guard_place import open_guard
    from semel.doctor.database import Budget, check_database
    from semel.doctor.database_reading import read_database

    workers, children, clients = running
    in_transaction = 0
    if app is not None and any(job.transaction for job in app.jobs.values()):
        in_transaction = app.settings.concurrency
    budget = Budget(workers=workers, children=children, clients=clients, transactions=in_transaction)
    schema = asked.schema or (None if app is None else app.catalogue.schema)
    with open_guard(asked.database, schema) as session:
        numbers = read_database(session, budget=budget, keep=keep)
    return check_database(numbers), {runs.job_type: runs for runs in numbers.health.runs}


def _check_app(app: App, measured: Mapping[str, Runs]) -> list[Finding]:
    from semel.doctor.application import check_application
    from semel.doctor.application_reading import read_application

    return check_application(read_application(app), measured)


def _check_guarded(name: str, measured: Mapping[str, Runs]) -> Iterator[Finding]:
    from semel.cli.place import load
    from semel.note.ways import find_guard

    yield from _declared([find_guard(load(name, object, "guarded function"))], measured)


def _check_celery(
    name: str, eta: timedelta | None, consumer: timedelta | None, measured: Mapping[str, Runs]
) -> Iterator[Finding]:
    from semel.adapters.celery import find_guarded
    from semel.doctor.celery import check
    from semel.doctor.celery_reading import load_tasks, read_celery

    app = load_celery(name)
    load_tasks(app)
    yield from check(read_celery(app, eta_horizon=eta, consumer_timeout=consumer))
    guarded = [find_guarded(task) for _, task in sorted(app.tasks.items())]
    yield from _declared([each for each in guarded if each is not None], measured)


def _check_sqs(name: str, measured: Mapping[str, Runs]) -> Iterator[Finding]:
    from semel.doctor.sqs import Consuming, check_queue
    from semel.guard.guarded import Guarded

    consumer = load_consumer(name)
    queue = consumer.queue
    letters = queue.dead_letters()
    yield from check_queue(
        queue.settings, Consuming.of(consumer), None if letters is None else letters.settings
    )
    yield from _declared([each for each in consumer.semel_functions if isinstance(each, Guarded)], measured)


def _declared(guarded: list[Guarded[..., Any]], measured: Mapping[str, Runs]) -> Iterator[Finding]:
    """What each declares, by itself and beside its measured runs."""
    from semel.doctor.application import check_guard, measured_past
    from semel.doctor.application_reading import read_guard

    for each in guarded:
        numbers = read_guard(each)
        yield from check_guard(numbers)
        yield from measured_past(numbers, measured.get(each.declaration.job_type))


def _check_sidekiq(asked: Asked, environment: str, told: Mapping[str, timedelta | None]) -> list[Finding]:
    from semel.adapters.sidekiq.reading import read_state
    from semel.doctor.sidekiq import check_sidekiq
    from semel.doctor.sidekiq_reading import read_sidekiq

    state = None if asked.sidekiq_redis is None else read_state(asked.sidekiq_redis)
    return check_sidekiq(read_sidekiq(asked.sidekiq, state, environment=environment, **told))
