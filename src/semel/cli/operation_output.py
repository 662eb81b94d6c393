"""How operations are shown to people: a line in a list, and one with all that a decision needs."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import typer

from semel.cli.output import ago, moment, print_json, print_table, printable_lines

if TYPE_CHECKING:
    from semel.core.operation_report import OperationPage, OperationRecord, OperationSummary
    from semel.core.report import JobRecord
    from semel.store.run import Session

HEADINGS = (
    "id",
    "job type",
    "operation",
    "state",
    "claim",
    "revision",
    "effect",
    "changed",
    "why, or last error",
)


def print_page(page: OperationPage, *, as_json: bool, nothing: str) -> None:
    """A page as a table or as JSON."""
    if as_json:
        print_json(page)
    elif not page.operations:
        typer.echo(nothing)
    else:
        print_table("", HEADINGS, (_line(one, page.as_of) for one in page.operations))
        if page.next_before_id is not None:
            typer.echo(f"There are more: --before {page.next_before_id}, or a larger --limit.")


def _line(one: OperationSummary, now: datetime) -> tuple[str, ...]:
    place = f"{one.scope}: " if one.scope else ""
    why = one.held_reason or one.last_error or ""
    return (
        str(one.id),
        one.job_type,
        f"{place}{one.name}",
        one.condition(now),
        str(one.claim),
        str(one.revision),
        one.effect,
        ago(one.changed_at, now),
        why.splitlines()[0] if why else "",
    )


def find_job_beside(session: Session, record: OperationRecord) -> JobRecord | None:
    """The semel job that the operation belongs to, where both are in one database."""
    from semel.operate.held import jobs_beside
    from semel.operate.held_jobs import job_of
    from semel.store.guard_views import has_queue
    from semel.store.run import run
    from semel.store.views import find_job

    job_id = job_of(record.message)
    if job_id is None or not jobs_beside(session) or not run(has_queue(), session):
        return None
    return run(find_job(job_id), session)


def print_operation(record: OperationRecord, job: JobRecord | None, *, as_json: bool) -> None:
    """All there is about one, with what can be decided about it."""
    if as_json:
        fields = ("as_of", "operation", "result", "message", "unsure_until", "events")
        shown = {name: getattr(record, name) for name in fields}
        print_json(shown | {"job": None if job is None else job.job})
        return
    lines = [*_describe(record), *_describe_job(job), *_describe_events(record), *_advise(record)]
    typer.echo("\n".join(map(printable_lines, lines)))


def print_changes(shown: OperationRecord, now: OperationRecord) -> None:
    """What is otherwise than it was shown: the lines that differ, and what came to its history."""
    known = {*_describe(shown), *_describe_events(shown)}
    lines = [line for line in (*_describe(now), *_describe_events(now)) if line not in known]
    typer.echo("\n".join(["It has changed since it was shown:", *map(printable_lines, lines)]))


def _describe(record: OperationRecord) -> list[str]:
    one, now = record.operation, record.as_of
    place = f" in {one.scope}" if one.scope else ""
    head = f"Operation {one.id}: {one.job_type} {one.name}{place}, {one.condition(now)}"
    lines = [f"{head}, claim {one.claim}, revision {one.revision}"]
    facts: list[tuple[str, Any]] = [
        ("held", one.held_reason),
        ("effect", one.effect),
        ("claimed", moment(one.claimed_at, now)),
        ("acting", moment(one.acting_at, now) if one.acting_at else "no claim passed its point of no return"),
        ("lease to", moment(one.lease_until, now)),
        ("last sign", moment(one.last_sign(), now)),
        ("counts", _counts(one)),
        ("reference", f"{one.reference} (generation {one.generation}, given {ago(one.reference_at, now)})"),
        ("last error", one.last_error),
        ("result", None if record.result is None else json.dumps(record.result, ensure_ascii=False)),
        ("message", json.dumps(record.message, ensure_ascii=False) if record.message else _no_message(one)),
        ("key", one.key + (f" (secret {one.key_version})" if one.key_version else "")),
    ]
    return lines + [f"  {name:<10} {value}" for name, value in facts if value is not None]


def _counts(one: OperationSummary) -> str:
    counted = (
        (one.claims, "claim"),
        (one.takeovers, "takeover"),
        (one.unsure, "uncertain end"),
        (one.looks, "look-up"),
        (one.extra_used, "extra attempt"),
    )
    return ", ".join(
        f"{count} {word}{'s' if count != 1 else ''}" for count, word in counted if count or word == "claim"
    )


def _no_message(one: OperationSummary) -> str | None:
    return None if one.state.value == "completed" else "not kept: to redo it, send it again yourself"


def _describe_job(found: JobRecord | None) -> list[str]:
    if found is None:
        return []
    job, now = found.job, found.as_of
    lease = "" if job.locked_until is None else f", lease to {moment(job.locked_until, now)}"
    worker = "" if found.worker is None else f", worker {found.worker}"
    return [f"  job        {job.id}: {job.kind}, {job.status.value}{worker}{lease}"]


def _describe_events(record: OperationRecord) -> list[str]:
    lines = ["History:"] if record.events else []
    for event in record.events:
        who = f" by {event.who}" if event.who else ""
        why = f": {event.why}" if event.why else ""
        detail = f" {json.dumps(event.detail, ensure_ascii=False)}" if event.detail else ""
        lines.append(
            f"  {event.at.astimezone():%Y-%m-%d %H:%M:%S} {event.event}{who}, claim {event.claim}{why}{detail}"
        )
    return lines


def _advise(record: OperationRecord) -> list[str]:
    one = record.operation
    if not one.waits(record.as_of):
        return []
    tail = f'{one.id} --claim {one.claim} --revision {one.revision} --reason "…"'
    return [
        "Did it happen? Look in the outside system for the reference. Then:",
        f"  it did        semel held done {tail}",
        f"  it did not    semel held redo {tail}",
        f"  leave it so   semel held abandon {tail}",
    ]
