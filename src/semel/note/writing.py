"""From an object to a written note: what the command and the helper for tests share."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from datetime import timedelta
from types import ModuleType
from typing import Any

from semel.doctor.application_reading import read_application, read_guard
from semel.doctor.finding import Finding, in_order
from semel.errors import ConfigurationError
from semel.note.building import Told, build
from semel.note.measured import WITHIN, Measurement
from semel.note.origin import Origin
from semel.note.page import Page
from semel.note.ways import Subject, find_subject
from semel.store.measures import measure_runs
from semel.store.run import Session, run


def write_note(origin: Origin, found: object, measurement: Measurement | None = None) -> Page:
    """The note on an object that ``origin.target`` names. Without a measurement it says that there is none."""
    subject = find_subject_of(origin, found)
    told = Told(measurement=measurement or Measurement(), findings=in_order(list(_findings(subject))))
    return build(subject, origin, told)


def find_subject_of(origin: Origin, found: object) -> Subject:
    """What the note is about, with the ways in of the modules that were named."""
    names = [origin.target.partition(":")[0], *origin.modules]
    return find_subject(found, [_module(name) for name in names])


def measure(session: Session, job_type: str, *, within: timedelta = WITHIN) -> Measurement:
    """What the database says of a job type's runs."""
    runs = run(measure_runs(job_type, within=within), session)
    return Measurement(runs=next(iter(runs), None), asked=True, within=within)


def _module(name: str) -> ModuleType:
    known = sys.modules.get(name)
    if known is not None:
        return known
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigurationError(f"Importing {name} failed: {error}.", remedy="Check --module.") from error


def _findings(subject: Subject) -> Iterator[Finding]:
    """What doctor finds that concerns it, as far as code decides it; what is for knowing about a whole broker is left out."""
    from semel.doctor.application import check_application, check_guard

    seen: set[tuple[str, str]] = set()
    job_type = subject.guarded.declaration.job_type
    for finding in check_guard(read_guard(subject.guarded)):
        seen.add((finding.code, finding.subject))
        yield finding
    for app in subject.apps:
        kinds = {job.kind for job in app.jobs.values() if job.guard is subject.guarded}
        for finding in check_application(read_application(app)):
            if finding.subject in {job_type, *kinds} and (finding.code, finding.subject) not in seen:
                yield finding
    for celery_app in subject.celery_apps:
        yield from _of_celery(celery_app, subject)


def _of_celery(app: Any, subject: Subject) -> Iterator[Finding]:
    from semel.adapters.celery import find_guarded
    from semel.doctor.celery import check
    from semel.doctor.celery_reading import read_celery

    names = {name for name, task in app.tasks.items() if find_guarded(task) is subject.guarded}
    for finding in check(read_celery(app)):
        if finding.subject in names or (finding.subject == "the broker" and not finding.is_fine):
            yield finding
