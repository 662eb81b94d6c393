"""What is there: jobs, queues, schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from semel.cli.choices import (
    AsJson,
    Database,
    EndedNewer,
    EndedOlder,
    ErrorText,
    Kind,
    Newer,
    Older,
    Queue,
    Schema,
    Statuses,
    UniqueKey,
    build_filter,
)
from semel.cli.output import age, ago, moment, print_json, print_table
from semel.cli.place import open_place

if TYPE_CHECKING:
    from datetime import datetime

    from semel.core.report import JobSummary, Overview

Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="At most so many.")]
Before = Annotated[int | None, typer.Option("--before", metavar="ID", help="Only ids under this.")]


def jobs(
    status: Statuses = None,
    queue: Queue = None,
    kind: Kind = None,
    error: ErrorText = None,
    unique_key: UniqueKey = None,
    older: Older = None,
    newer: Newer = None,
    ended_older: EndedOlder = None,
    ended_newer: EndedNewer = None,
    limit: Limit = 50,
    before: Before = None,
    database: Database = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first.

    From the table and the history; every filter that is given must hold.

    Example: semel jobs --status failed --queue mail --newer "2 h"
    """
    from semel.store.run import run
    from semel.store.views import list_jobs

    created, ended = (older, newer), (ended_older, ended_newer)
    wanted = build_filter(status, queue, kind, error, created, ended, unique_key)
    with open_place(database, schema) as session:
        page = run(list_jobs(wanted, limit=limit, before_id=before), session)
    if as_json:
        print_json(page)
        return
    if not page.jobs:
        typer.echo("No such jobs.")
        return
    print_table("", JOB_HEADINGS, (_job_line(job, page.as_of) for job in page.jobs))
    if page.next_before_id is not None:
        typer.echo(f"There are more: --before {page.next_before_id}, or a larger --limit.")


JOB_HEADINGS = ("id", "kind", "queue", "status", "tries", "when", "last error or progress")


def _job_line(job: JobSummary, now: datetime) -> tuple[str, ...]:
    tries = f"{job.attempts}/{job.max_attempts}" + (f" +{job.crashes} crashes" if job.crashes else "")
    return (
        str(job.id),
        job.kind,
        job.queue,
        job.condition(now),
        tries,
        ago(job.finished_at or job.run_at, now),
        _last_word(job),
    )


def _last_word(job: JobSummary) -> str:
    if job.finished_at is None and (job.progress is not None or job.progress_message):
        share = "" if job.progress is None else f"{job.progress:.0%}"
        return " ".join(part for part in (share, job.progress_message) if part)
    return job.last_error or ""


def queues(
    history: Annotated[bool, typer.Option("--history", help="Also the days of the history.")] = False,
    database: Database = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Count each queue's jobs.

    "expired" runs past its lease and is about to be rescued; "finished" is remembered for its unique key.

    Example: semel queues --history
    """
    from semel.store.run import run
    from semel.store.views import count_queues

    with open_place(database, schema) as session:
        overview = run(count_queues(history=history), session)
    if as_json:
        print_json(_overview_json(overview))
        return
    if overview.queues:
        print_table("", QUEUE_HEADINGS, _queue_lines(overview))
    else:
        typer.echo("No jobs.")
    if history:
        print_table("History", ("day (UTC)", "jobs (about)", "kB"), _history_lines(overview))


QUEUE_COUNTS = ("due", "delayed", "retrying", "running", "expired", "failed", "held", "finished")
QUEUE_HEADINGS = ("queue", *QUEUE_COUNTS, "oldest due")


def _queue_lines(overview: Overview) -> list[tuple[str, ...]]:
    return [
        (
            counts.queue,
            *(f"{getattr(counts, name):,}" for name in QUEUE_COUNTS),
            "-" if counts.oldest_due is None else age(counts.oldest_due),
        )
        for counts in overview.queues
    ]


def _history_lines(overview: Overview) -> list[tuple[str, ...]]:
    return [
        (str(day.day), "?" if day.jobs is None else f"{day.jobs:,}", f"{day.bytes // 1024:,}")
        for day in overview.history
    ]


def _overview_json(overview: Overview) -> dict[str, object]:
    return {
        "as_of": overview.as_of,
        "queues": [
            {
                "queue": counts.queue,
                **{name: getattr(counts, name) for name in QUEUE_COUNTS},
                "oldest_due_seconds": counts.oldest_due,
            }
            for counts in overview.queues
        ],
        "history": overview.history,
    }


def schedules(database: Database = None, schema: Schema = None, as_json: AsJson = False) -> None:
    """List schedules with their last tick.

    Those that a worker noted when it started.

    Example: semel schedules --json
    """
    from semel.store.run import run
    from semel.store.schedules import read_clock
    from semel.store.views import list_schedules

    with open_place(database, schema) as session:
        now = run(read_clock(), session)
        found = run(list_schedules(), session)
    if as_json:
        print_json({"as_of": now, "schedules": found})
        return
    if not found:
        typer.echo("No schedules. A worker notes those of its application when it starts.")
        return
    lines = [
        (one.name, one.definition, one.kind, moment(one.last_tick, now), ago(one.seen_at, now))
        for one in found
    ]
    print_table("", ("name", "definition", "kind", "last tick", "seen by a worker"), lines)
