"""Sends a kept message to Celery's broker again, for ``semel held redo``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from celery import Celery

from semel.adapters.celery.message import ADAPTER, publish


class CeleryResender:
    """Publishes through the application's own broker, under the id that the message had.

    What it was to expire at is left out: a person decided that it is to happen now.
    """

    adapter = ADAPTER

    def __init__(self, app: Celery) -> None:
        self._app = app

    def send(self, message: Mapping[str, Any], *, who: str, why: str) -> str:
        """Publish it; raises what the broker raises."""
        publish(self._app, message, expires=None)
        return f"The task {message['task']} was published again, as {message['id']}."
