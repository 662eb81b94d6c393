"""Which brokers a redo can reach: composed from the options that name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from semel.adapters.sqs import Consumer
    from semel.operate.resending import Resender

CeleryApp = Annotated[
    str | None,
    typer.Option(
        "--celery",
        envvar="SEMEL_CELERY_APP",
        metavar="MODULE:APP",
        help="The Celery application, such as shop.tasks:app.",
    ),
]
SidekiqRedis = Annotated[
    str | None,
    typer.Option(
        "--sidekiq",
        envvar="SEMEL_SIDEKIQ_REDIS",
        metavar="URL",
        help="Sidekiq's Redis, such as redis://localhost:6379/0.",
    ),
]
NoSend = Annotated[
    bool, typer.Option("--no-send", help="Release only; you send the messages again yourself.")
]
SqsConsumer = Annotated[
    str | None,
    typer.Option(
        "--sqs",
        metavar="MODULE:CONSUMER",
        help="A consumer of Amazon SQS, such as shop.messages:consumer; its queue's attributes are read.",
    ),
]


def find_resenders(celery: str | None, sidekiq: str | None = None) -> list[Resender]:
    """Who sends the messages that the adapters kept; an application that cannot be loaded is wrong usage."""
    resenders: list[Resender] = []
    if celery:
        from semel.adapters.celery import CeleryResender

        resenders.append(CeleryResender(load_celery(celery)))
    if sidekiq:
        from semel.adapters.sidekiq import SidekiqResender

        resenders.append(SidekiqResender(sidekiq))
    from semel.adapters.sqs import SqsResender

    resenders.append(SqsResender())  # asks for boto3 and its account when there is something to send
    return resenders


def load_consumer(name: str) -> Consumer:
    """The consumer of SQS of that name."""
    from semel.adapters.sqs import Consumer as Kind
    from semel.cli.place import load

    return load(name, Kind, "semel.adapters.sqs.Consumer")


def load_celery(name: str) -> Any:
    """The Celery application of that name."""
    from semel.cli.place import load
    from semel.errors import ConfigurationError

    try:
        from celery import Celery
    except ModuleNotFoundError as error:
        raise ConfigurationError("Celery is not installed.", remedy="pip install 'semel[celery]'") from error
    return load(name, Celery, "celery.Celery")
