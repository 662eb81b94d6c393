"""Celery's application in the adapters' tests: for the worker, told by the environment, and for the test that sends."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import Any

from celery import Celery

SETUP = "SEMEL_TEST_CELERY"
"""The environment variable with the set-up, as JSON."""
DATABASE = "SEMEL_TEST_GUARD"


@dataclass(frozen=True)
class Setup:
    """Where a test's messages and results go."""

    broker: str
    backend: str
    queue: str
    visibility: float = 10.0
    """Of Redis, in seconds: what is not acknowledged by then comes again."""
    prefetch: int = 1
    conf: dict[str, Any] = field(default_factory=dict)

    def dump(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def load(cls) -> Setup:
        return cls(**json.loads(os.environ[SETUP]))


def make_app(setup: Setup) -> Celery:
    """An application over it."""
    app = Celery("shop", broker=setup.broker, backend=setup.backend, set_as_current=False)
    app.conf.update(
        task_default_queue=setup.queue,
        worker_prefetch_multiplier=setup.prefetch,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=5,  # a worker whose broker went with the run ends too
        worker_hijack_root_logger=True,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        result_expires=600,
        task_track_started=False,
        redis_socket_timeout=60,
    )
    if setup.broker.startswith("redis"):
        app.conf.broker_transport_options = {
            "visibility_timeout": setup.visibility,
            # Messages past it are looked for every interval x throttle: 100 s, unless told otherwise.
            "unacked_restore_interval": 1,
            "unacked_restore_throttle": 1,
            # Who is killed while it looks keeps others from looking: for five minutes, unless told otherwise.
            "unacked_mutex_expire": 2,
        }
    app.conf.update(setup.conf)
    return app
