"""A Celery application with one task, for workers of the tests: it notes what came in a file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from celery import Celery

NOTED = "SEMEL_TEST_NOTED"


def make_celery(url: str) -> Celery:
    app = Celery("tests", broker=url)
    app.conf.update(broker_connection_retry_on_startup=True, worker_prefetch_multiplier=1)

    @app.task(name="tests.note", bind=True, acks_late=True)
    def note(self: Any, number: int, key: str | None = None) -> None:
        line = json.dumps(
            {
                "id": self.request.id,
                "number": number,
                "key": key,
                "message": self.request.get("semel-message-id") or self.request.headers,
            }
        )
        with Path(os.environ[NOTED]).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    return app


if "SEMEL_TEST_BROKER" in os.environ:
    app = make_celery(os.environ["SEMEL_TEST_BROKER"])
