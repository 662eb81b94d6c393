"""Which brokers a redo can reach: composed from the options that name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
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


def find_resenders(celery: str | None) -> list[Resender]:
    """Who sends the messages that the adapters kept; an application that cannot be loaded is wrong usage."""
    resenders: list[Resender] = []
    if celery:
        from semel.adapters.celery import CeleryResender

        resenders.append(CeleryResender(load_celery(celery)))
    return resenders


def load_celery(name: str) -> Any:
    """The Celery application of that name."""
    from semel.cli.place import load
    from semel.errors import ConfigurationError

    try:
        from celery import Celery
    except ModuleNotFoundError as error:
        raise ConfigurationError("Celery is not installed.", remedy="pip install 'semel[celery]'") from error
    return load(name, Celery, "celery.Celery")
