"""``semel sqs worker``."""

from __future__ import annotations

import logging
import signal
from typing import Annotated

import typer

from semel.cli.resending import load_consumer
from semel.cli.worker import LogFormat, LogLevel

Consumer = Annotated[
    str, typer.Argument(metavar="CONSUMER", help="module:attribute of a semel.adapters.sqs.Consumer.")
]


def worker(consumer: Consumer, log_format: LogFormat = "text", log_level: LogLevel = "info") -> None:
    """Run a consumer of an Amazon SQS queue.

    One process, with as many threads as the consumer says.
    SIGTERM or SIGINT stops receiving, gives back what has not started, and waits for what runs; a second one hurries.
    The account is boto3's: AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL_SQS and its other ways count.

    Example: semel sqs worker shop.messages:consumer
    """
    from semel.cli.group import DONE, NOT_SO
    from semel.queue.worker.logs import configure_logging

    configure_logging(log_format, log_level)
    logging.getLogger("botocore").setLevel(logging.WARNING)
    found = load_consumer(consumer)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: found.stop())
    raise typer.Exit(NOT_SO if found.run() else DONE)
