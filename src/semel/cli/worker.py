"""``semel worker``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from semel.cli.choices import Database, Schema
from semel.cli.place import find_app

if TYPE_CHECKING:
    from datetime import timedelta


Application = Annotated[
    str | None, typer.Argument(metavar="[APP]", help="module:attribute, or SEMEL_APP.", show_default=False)
]
Children = Annotated[
    int, typer.Option("--children", "-c", metavar="N", min=1, help="Processes that run jobs.")
]
Concurrency = Annotated[
    int | None, typer.Option("--concurrency", metavar="N", min=1, help="Jobs at a time in each child [20].")
]
Queues = Annotated[
    list[str] | None,
    typer.Option("--queue", "-q", metavar="NAME", help="Only this queue; may be repeated [every queue]."),
]
Lease = Annotated[
    str | None, typer.Option("--lease", metavar="DURATION", help='How long a claim holds ["60 s"].')
]
StopGrace = Annotated[
    str | None,
    typer.Option("--stop-grace", metavar="DURATION", help='How long a stop waits for jobs ["30 s"].'),
]
Drain = Annotated[bool, typer.Option("--drain", help="End when nothing is due.")]
LogFormat = Annotated[Literal["text", "json"], typer.Option("--log-format", help="How lines are written.")]
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error"],
    typer.Option("--log-level", help="The least that is logged."),
]


def worker(
    app: Application = None,
    children: Children = 1,
    concurrency: Concurrency = None,
    queue: Queues = None,
    lease: Lease = None,
    stop_grace: StopGrace = None,
    drain: Drain = False,
    log_format: LogFormat = "text",
    log_level: LogLevel = "info",
    database: Database = None,
    schema: Schema = None,
) -> None:
    """Run an application's jobs.

    One supervisor, and children that run the handlers.
    SIGTERM or SIGINT stops claiming and waits for what runs; a second one hurries.

    Example: semel worker shop.jobs:app --children 2 --queue mail --queue default
    """
    from semel.queue.worker.options import WorkerOptions
    from semel.queue.worker.supervisor import run_supervisor

    options = WorkerOptions(
        app=find_app(app),
        database=database,
        schema=schema,
        children=children,
        concurrency=concurrency,
        queues=tuple(queue) if queue else None,
        drain=drain,
        log_format=log_format,
        log_level=log_level,
        lease=read_duration(lease, "--lease"),
        stop_grace=read_duration(stop_grace, "--stop-grace"),
    )
    raise typer.Exit(run_supervisor(options))


def read_duration(text: str | None, option: str) -> timedelta | None:
    from semel.core.durations import to_timedelta

    return None if text is None else to_timedelta(text, name=option)
