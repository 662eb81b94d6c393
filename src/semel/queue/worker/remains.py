"""What a dead child held: given back at once, so that its death costs no lease."""

from __future__ import annotations

import logging
import random

from semel.core.retry import Backoff
from semel.queue.worker.children import Child
from semel.queue.worker.links import Link
from semel.queue.worker.slots import Slot
from semel.store.jobs import Fence, expire, give_back, time_out

logger = logging.getLogger("semel.worker")


async def give_back_remains(link: Link, child: Child, *, stopped: bool, backoff: Backoff) -> None:
    """Settle a dead child's slots.

    Not started: pending again, no attempt charged. Started: the lease ends, and the rescue counts the crash; where the
    child was stopped, or killed for another job's time-out, they are given back without a charge. Killed for: timed out.
    """
    waiting: list[Fence] = []
    started: list[Fence] = []
    late: list[Slot] = []
    for slot in child.slots.read():
        fence = Fence(slot.job_id, slot.claim, slot.worker)
        if (slot.job_id, slot.claim) in child.blamed:
            late.append(slot)
        else:
            (started if slot.started else waiting).append(fence)
    pardoned = stopped or bool(child.blamed)
    if pardoned:
        waiting, started = waiting + started, []
    try:
        if waiting:
            count, _ = await link.insist(give_back(waiting), patient=True)
            logger.info("gave back %s jobs of a child that ended", count)
        if started:
            count, _ = await link.insist(expire(started), patient=True)
            logger.error("a child died while it ran %s jobs: they are rescued", count)
        for slot in late:
            await _time_out(link, slot, backoff)
    finally:
        await link.close()
        child.close()


async def _time_out(link: Link, slot: Slot, backoff: Backoff) -> None:
    summary = (
        "TimedOut: the handler ran past its time-out, did not end when asked, and its process was killed"
    )
    fence = Fence(slot.job_id, slot.claim, slot.worker)
    delay = backoff.delay(1, random.random)
    status, _ = await link.insist(time_out(fence, delay=delay, summary=summary), patient=True)
    logger.error(
        "job %s timed out and ignored it: %s",
        slot.job_id,
        status or "claim lost",
        extra={"job_id": slot.job_id, "outcome": status or "claim lost", "reason": summary},
    )
