"""From a description's ``deliver`` to its way."""

from __future__ import annotations

from pathlib import Path

from semel.replay.description import (
    CalledFunction,
    CeleryTask,
    Command,
    Deliver,
    SemelJob,
    SidekiqJob,
    SqsQueue,
)
from semel.replay.ways.called import CalledWay
from semel.replay.ways.celery import CeleryWay
from semel.replay.ways.semel_queue import SemelWay
from semel.replay.ways.sidekiq import SidekiqWay
from semel.replay.ways.sqs import SqsWay
from semel.replay.ways.way import Surroundings, Way


def open_way(deliver: Deliver, plain: Surroundings, socket: Path) -> Way:
    """The way; ``plain`` is where the user's code is without the wrapper, ``socket`` a short path that is free."""
    match deliver:
        case CalledFunction() | Command():
            return CalledWay(deliver, socket)
        case SemelJob():
            return SemelWay(deliver, plain)
        case SidekiqJob():
            return SidekiqWay(deliver, plain)
        case CeleryTask():
            return CeleryWay(deliver, plain)
        case SqsQueue():
            return SqsWay(deliver, plain)
