"""The job as a Celery task under celery-once: a lock in Redis, taken where a task is sent and let go of where it ends."""

from __future__ import annotations

import os
from typing import Any

import provider
from celery import Celery
from celery_once import QueueOnce

app = Celery("judged", broker=os.environ["BROKER"])
app.conf.update(
    task_default_queue="judged",
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    broker_transport_options={
        "visibility_timeout": 2,
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
        "unacked_mutex_expire": 2,
    },
    ONCE={"backend": "celery_once.backends.Redis", "settings": {"url": os.environ["LOCKS"]}},
)
once: dict[str, Any] = {"graceful": True, "keys": ["order_id"], "timeout": 2}


@app.task(base=QueueOnce, once=once, acks_late=True, reject_on_worker_lost=True)
def charge(order_id: int) -> None:
    provider.charge(order_id)
