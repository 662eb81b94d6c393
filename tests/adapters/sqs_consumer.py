"""The consumer that workers run in the SQS adapter's tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tests.adapters import job
from tests.adapters.rig import UNGUARDED

import semel
from semel.adapters.sqs import Consumer

once = semel.Once(os.environ["SEMEL_DATABASE_URL"])


def unguarded(name: str, amount: int = 100) -> str:
    return job.charge_unguarded(name)


functions: dict[str, Callable[..., Any]] = {UNGUARDED: unguarded}
functions |= {effect: job.declare(once, effect)(job.charge) for effect in job.effects()}
consumer = Consumer(
    os.environ["SEMEL_TEST_QUEUE"],
    functions,
    kind="kind",
    concurrency=int(os.environ["SEMEL_TEST_CONCURRENCY"]),
    wait=1,
)
