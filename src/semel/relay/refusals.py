"""What becomes of a message that did not get through: tried again, a dead letter, in the way of its key, or aside."""

from __future__ import annotations

import dataclasses
import logging
import random
from typing import Final

from semel.core.decide import Raised, Settlement, decide
from semel.core.job import ClaimedJob
from semel.core.outcomes import Snooze
from semel.core.retry import RetryPolicy
from semel.relay.figures import Figures
from semel.relay.route import AGAIN, Route

logger = logging.getLogger("semel.relay")

_FOR_EVER: Final = 2_000_000_000
"""Attempts of a message that keeps its key waiting."""


def after_refusal(job: ClaimedJob, error: BaseException, route: Route) -> Settlement:
    """What is written of a refused message: charged, unless a person or the route says otherwise."""
    identity, policy = job.identity(), route.retry
    if job.ordering_key is not None and route.when_refused == "block":
        identity, policy = (
            dataclasses.replace(identity, max_attempts=_FOR_EVER),
            RetryPolicy(backoff=AGAIN),
        )
    return decide(identity, Raised(error), policy, random.random)


def step_aside(job: ClaimedJob, wait: float, times: int) -> Settlement:
    """What is written of one that was alone on its way when its connection ended: uncharged, but others go first.

    ``wait`` is how long the next connection may take; ``times`` that it happened while others got through.
    """
    aside = Snooze(
        for_=wait + AGAIN.delay(times, random.random).total_seconds(),
        reason=f"alone on its way when the connection ended ({times} times, with others getting through between)",
    )
    return decide(job.identity(), Raised(aside), RetryPolicy(), random.random)


def tell_blocked(job: ClaimedJob, settlement: Settlement, figures: Figures) -> None:
    """Say once that a message keeps its key waiting."""
    key = job.ordering_key
    assert key is not None
    why = settlement.error.message if settlement.error is not None else settlement.reason
    if figures.block(key, job.id, why):
        logger.error(
            "queue %s: job %s blocks its key %r: %s",
            job.queue,
            job.id,
            key,
            why,
            extra={"job_id": job.id, "queue": job.queue, "ordering_key": key},
        )
