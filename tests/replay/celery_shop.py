"""A shop's Celery application, as a worker runs it under replay. Nothing here knows of it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from celery import Celery, Task

app = Celery("shop", broker=os.environ["BROKER"], backend=os.environ.get("BACKEND"))
app.conf.update(
    task_default_queue=os.environ.get("QUEUE", "charges"),
    task_always_eager="EAGER" in os.environ,
    task_routes={"celery_shop.routed": {"queue": f"{os.environ.get('QUEUE', 'charges')}-routed"}},
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    broker_transport_options={
        "visibility_timeout": 2,
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
        "unacked_mutex_expire": 2,
    }
    if os.environ["BROKER"].startswith("redis")
    else {},
)
print("what an application prints is not the sender's answer")


class Kept(Task):
    """It goes to the queue once only, as locks at the sender's make it."""

    def apply_async(self, *args: object, **options: object) -> object:
        if Path(f"{os.environ['EFFECTS']}.lock").exists():
            return None
        Path(f"{os.environ['EFFECTS']}.lock").touch()
        return super().apply_async(*args, **options)


def act(order: str) -> None:
    with Path(os.environ["EFFECTS"]).open("a") as effects:
        effects.write(f"{order} {os.getpid()} {app.current_task.request.id}\n")
    while Path(f"{os.environ['EFFECTS']}.hold").exists():
        time.sleep(0.01)


@app.task(acks_late=True, reject_on_worker_lost=True)
def charge(order: str) -> None:
    act(order)


@app.task
def placed(order: str, /) -> None:
    act(order)


@app.task
def early(order: str) -> None:
    act(order)


@app.task
def routed(order: str) -> None:
    act(order)


@app.task(base=Kept)
def once(order: str) -> None:
    act(order)
