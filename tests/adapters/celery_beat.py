"""Celery's application for `celery beat`: one slot after another, for a guarded task and for its unguarded twin."""

from __future__ import annotations

import time

from celery.beat import BeatLazyFunc
from tests.adapters.celery_app import Setup, make_app

PERIOD = 2
"""Seconds of a slot."""


def slot(name: str = "") -> str:
    """The slot that is now, as the scheduler says it when it sends."""
    return f"{name}{int(time.time() // PERIOD)}"


setup = Setup.load()
app = make_app(setup)
app.conf.beat_max_loop_interval = 0.2
app.conf.beat_schedule = {
    "report": {
        "task": "slot",
        "schedule": PERIOD,
        "args": ("report", BeatLazyFunc(slot)),
        "options": {"queue": setup.queue},
    },
    "twin": {
        "task": "unguarded",
        "schedule": PERIOD,
        "args": (BeatLazyFunc(slot, "twin-"),),
        "options": {"queue": setup.queue},
    },
}
