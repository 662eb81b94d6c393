"""``semel relay``."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from semel.cli.choices import AsJson, Database
from semel.cli.output import print_json
from semel.cli.place import load
from semel.cli.worker import Drain, Lease, LogFormat, LogLevel, Queues, StopGrace, read_duration

RelayName = Annotated[
    str | None,
    typer.Argument(metavar="[RELAY]", help="module:attribute, or SEMEL_RELAY.", show_default=False),
]


def relay(
    relay: RelayName = None,
    queue: Queues = None,
    lease: Lease = None,
    stop_grace: StopGrace = None,
    drain: Drain = False,
    log_format: LogFormat = "text",
    log_level: LogLevel = "info",
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Forward queues to other brokers.

    Each message is done when its broker has confirmed it. Several relays may run at once.
    SIGTERM or SIGINT waits for what is under way; a second one gives it back at once.
    --json prints at the end what was sent, by queue.

    Example: semel relay shop.outbox:relay
    """
    from semel.errors import ConfigurationError
    from semel.queue.worker.logs import configure_logging
    from semel.relay import Relay
    from semel.relay.service import run_relay

    name = relay or os.environ.get("SEMEL_RELAY")
    if not name:
        raise ConfigurationError(
            "No relay was given.",
            remedy="Name it as module:attribute, such as shop.outbox:relay, or set SEMEL_RELAY.",
        )
    configure_logging(log_format, log_level)
    found = load(name, Relay, "semel.relay.Relay")
    if database:
        found.app.point_to(database)
    overrides = {
        "lease": read_duration(lease, "--lease"),
        "stop_grace": read_duration(stop_grace, "--stop-grace"),
    }
    figures = run_relay(
        found.of(queue),
        drain=drain,
        **{name: value for name, value in overrides.items() if value is not None},
    )
    if as_json:
        print_json({"queues": {name: each.report() for name, each in figures.items()}})
