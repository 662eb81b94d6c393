"""``semel doctor``: composes what each option asks to be looked at, and prints what was found."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from semel.cli.choices import AsJson, Schema
from semel.cli.group import NOT_SO
from semel.cli.output import print_json
from semel.cli.resending import CeleryApp, SqsConsumer

if TYPE_CHECKING:
    from semel.doctor.finding import Finding

EtaHorizon = Annotated[
    str | None,
    typer.Option("--eta-horizon", metavar="TIME", help='How far ahead tasks are scheduled at most: "8 h".'),
]
ConsumerTimeout = Annotated[
    str | None,
    typer.Option("--consumer-timeout", metavar="TIME", help="RabbitMQ's consumer_timeout [30 min]."),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database",
        "-d",
        metavar="URL",
        help="The database: postgresql://, mysql:// or sqlite:///path. Where nothing else is named, SEMEL_DATABASE_URL.",
    ),
]
OfApp = Annotated[
    str | None, typer.Option("--app", metavar="MODULE:APP", help="An application of the semel queue.")
]
OfFunction = Annotated[
    list[str] | None,
    typer.Option(
        "--guarded",
        metavar="MODULE:FUNCTION",
        help="A guarded function by itself; may be given more than once.",
    ),
]
SidekiqFile = Annotated[
    Path | None, typer.Option("--sidekiq", metavar="FILE", help="Sidekiq's configuration, its sidekiq.yml.")
]
SidekiqUrl = Annotated[
    str | None, typer.Option("--sidekiq-redis", metavar="URL", help="Sidekiq's Redis; it is only read.")
]
Environment = Annotated[
    str, typer.Option("--environment", metavar="NAME", help="The section of sidekiq.yml that counts.")
]
Lease = Annotated[
    str | None, typer.Option("--lease", metavar="TIME", help="What guarded Sidekiq jobs declare [60 s].")
]
LongestRun = Annotated[
    str | None, typer.Option("--longest-run", metavar="TIME", help="Of the guarded Sidekiq jobs.")
]
ValidFor = Annotated[
    str | None,
    typer.Option(
        "--valid-for",
        metavar="TIME",
        help="How long the provider of guarded Sidekiq jobs keeps an idempotency key.",
    ),
]
Keep = Annotated[
    str | None,
    typer.Option("--keep", metavar="TIME", help="How long records are kept [as --app says, else 90 days]."),
]
Workers = Annotated[
    int,
    typer.Option("--workers", metavar="N", min=0, help="How many `semel worker` run, for the connections."),
]
Children = Annotated[int, typer.Option("--children", metavar="N", min=1, help="Children of each worker.")]
Clients = Annotated[int, typer.Option("--clients", metavar="N", min=0, help="Processes that enqueue.")]
FailOn = Annotated[
    Literal["error", "warning", "note", "never"],
    typer.Option("--fail-on", help="The least severity for which the exit code is 1."),
]


def doctor(
    database: DatabaseUrl = None,
    schema: Schema = None,
    app: OfApp = None,
    guarded: OfFunction = None,
    celery: CeleryApp = None,
    sqs: SqsConsumer = None,
    sidekiq: SidekiqFile = None,
    sidekiq_redis: SidekiqUrl = None,
    eta_horizon: EtaHorizon = None,
    consumer_timeout: ConsumerTimeout = None,
    environment: Environment = "production",
    lease: Lease = None,
    longest_run: LongestRun = None,
    valid_for: ValidFor = None,
    keep: Keep = None,
    workers: Workers = 0,
    children: Children = 1,
    clients: Clients = 0,
    fail_on: FailOn = "warning",
    as_json: AsJson = False,
) -> None:
    """Hold leases, limits, retention, the broker's time-outs and the database's state against each other.

    Reads configurations, and of a database, a Redis or a queue what it says of itself; it changes nothing. Everything that is
    named goes into one report. The exit code is 1 where something is as severe as --fail-on.

    Example: semel doctor --database postgresql://localhost/shop --app shop.jobs:app --celery shop.tasks:app
    """
    from semel.cli.examining import Asked, examine
    from semel.doctor.finding import in_order

    if not any((database, app, guarded, celery, sqs, sidekiq, sidekiq_redis)):
        database = os.environ.get("SEMEL_DATABASE_URL")
    asked = Asked(database, schema, app, celery, sqs, sidekiq, sidekiq_redis, tuple(guarded or ()))
    limits = (lease, longest_run, valid_for, keep, eta_horizon, consumer_timeout)
    checked, found = examine(asked, limits, (workers, children, clients), environment)
    findings = in_order(found)
    _report(checked, findings, as_json=as_json)
    if _fails(findings, fail_on):
        raise typer.Exit(NOT_SO)


def _fails(findings: list[Finding], fail_on: str) -> bool:
    from semel.doctor.finding import Severity

    severe = {"error": 1, "warning": 2, "note": 3, "never": 0}[fail_on]
    return any(finding.severity in list(Severity)[:severe] for finding in findings)


def _report(checked: list[str], findings: list[Finding], *, as_json: bool) -> None:
    if as_json:
        print_json({"checked": checked, "findings": findings})
        return
    for finding in findings:
        typer.echo(f"{finding.severity}: {finding.subject}: {finding.figure} [{finding.code}]")
        typer.echo(f"  {finding.happened}")
        typer.echo(f"  {finding.mend}")
    mended = sum(not finding.is_fine for finding in findings)
    typer.echo(f"Looked at: {', '.join(checked)}. To mend: {mended}; notes: {len(findings) - mended}.")
