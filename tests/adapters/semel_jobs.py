"""The application that the semel queue's worker runs in the adapters' contract."""

from __future__ import annotations

import os
from typing import Any

from tests.adapters import job

import semel

AGAIN_SOON = semel.RetryPolicy(backoff=semel.Backoff(base=0.2, factor=1))
app = semel.App(os.environ["SEMEL_DATABASE_URL"], poll=0.1, lease=2)
once = semel.Once(app)


@app.job(kind="unguarded", retry=AGAIN_SOON)
def unguarded(name: str, amount: int = 100) -> str:
    return job.charge_unguarded(name)


def _register(effect: str) -> Any:
    return app.job(kind=f"charge_{effect}", retry=AGAIN_SOON, once=job.declare(once, effect))(job.charge)


charges = {effect: _register(effect) for effect in job.effects()}
