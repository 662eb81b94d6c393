"""``semel doctor``: composes what each option asks to be looked at, and prints what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from semel.cli.choices import AsJson
from semel.cli.group import NOT_SO
from semel.cli.output import print_json
from semel.cli.resending import CeleryApp, SqsConsumer, load_celery, load_consumer

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


def doctor(
    celery: CeleryApp = None,
    sqs: SqsConsumer = None,
    eta_horizon: EtaHorizon = None,
    consumer_timeout: ConsumerTimeout = None,
    as_json: AsJson = False,
) -> None:
    """Hold leases, limits and the broker's time-outs against each other.

    Reads configurations, and for --sqs the queue's attributes. The exit code is 1 where something is to be mended.

    Example: semel doctor --celery shop.tasks:app --eta-horizon "8 h"
    """
    from semel.doctor.finding import in_order
    from semel.errors import ConfigurationError

    checked: list[str] = []
    findings: list[Finding] = []
    if celery:
        checked.append(f"celery {celery}")
        findings += _check_celery(celery, eta_horizon, consumer_timeout)
    if sqs:
        checked.append(f"sqs {sqs}")
        findings += _check_sqs(sqs)
    if not checked:
        raise ConfigurationError(
            "There is nothing to look at.", remedy="Say what: semel doctor --celery shop.tasks:app"
        )
    _report(checked, in_order(findings), as_json=as_json)
    if not all(finding.is_fine for finding in findings):
        raise typer.Exit(NOT_SO)


def _check_celery(name: str, eta_horizon: str | None, consumer_timeout: str | None) -> list[Finding]:
    from semel.core.durations import to_timedelta
    from semel.doctor.celery import check
    from semel.doctor.celery_reading import load_tasks, read_celery

    app = load_celery(name)
    load_tasks(app)
    horizon = None if eta_horizon is None else to_timedelta(eta_horizon, name="--eta-horizon")
    timeout = None if consumer_timeout is None else to_timedelta(consumer_timeout, name="--consumer-timeout")
    return check(read_celery(app, eta_horizon=horizon, consumer_timeout=timeout))


def _check_sqs(name: str) -> list[Finding]:
    from semel.doctor.sqs import Consuming, check_queue

    consumer = load_consumer(name)
    queue = consumer.queue
    letters = queue.dead_letters()
    return check_queue(queue.settings, Consuming.of(consumer), None if letters is None else letters.settings)


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
