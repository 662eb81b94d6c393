"""Enqueues the jobs of schedules when they are due. Every supervisor tries each tick; the database lets one in."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from semel.core.schedule import Schedule
from semel.queue.worker.links import Link
from semel.queue.worker.messages import SchedulePlan
from semel.store.schedules import enqueue_tick, read_clock, register_schedule

logger = logging.getLogger("semel.worker")

CATCH_UP: Final = timedelta(hours=24)
"""How far back a missed tick is caught up."""

LATE: Final = timedelta(seconds=10)
"""A tick that is met later than this counts as missed: nothing ran when it was due."""

_MOST: Final = 1000
_LONGEST_SLEEP: Final = 30.0


class Ticks:
    """Watches some schedules by the database's clock."""

    def __init__(self, link: Link, plans: Sequence[SchedulePlan]) -> None:
        self.link = link
        self.plans = plans
        self._position: dict[str, datetime] = {}

    async def run(self) -> None:
        """Register, catch up, then wait for tick after tick until cancelled. Restarts itself after any error."""
        while self.plans:
            try:
                await self._start()
                while True:
                    await self._wait()
                    await self._enqueue_due()
            except Exception:
                logger.exception("schedules: an error; starting again in a second")
                await asyncio.sleep(1)

    async def _start(self) -> None:
        for plan in self.plans:
            (since, now), _ = await self.link.insist(register_schedule(plan.recurring))
            known = self._position.get(plan.name)
            start = max(since, now - CATCH_UP) if known is None else known
            for tick in self._to_run(plan, start, now):
                await self._enqueue(plan, tick)
            self._position[plan.name] = now

    async def _wait(self) -> None:
        """Sleep until the next tick by the database's clock, or for half a minute at most, so that a step is noticed."""
        asked = time.monotonic()
        now, _ = await self.link.insist(read_clock())
        following = min(plan.schedule.next_tick(self._position[plan.name]) for plan in self.plans)
        left = (following - now).total_seconds() - (time.monotonic() - asked)
        if left > 0:
            await asyncio.sleep(min(left + 0.001, _LONGEST_SLEEP))

    async def _enqueue_due(self) -> None:
        now, _ = await self.link.insist(read_clock())
        for plan in self.plans:
            after = self._position[plan.name]
            if now <= after:
                continue
            for tick in self._to_run(plan, after, now):
                await self._enqueue(plan, tick)
            self._position[plan.name] = now

    async def _enqueue(self, plan: SchedulePlan, tick: datetime) -> None:
        job_id, _ = await self.link.insist(enqueue_tick(plan.recurring, tick))
        if job_id is not None:
            logger.info(
                "schedule %s: job %s for the tick of %s",
                plan.name,
                job_id,
                tick.isoformat(),
                extra={"schedule": plan.name, "job_id": job_id, "tick": tick.isoformat()},
            )

    def _to_run(self, plan: SchedulePlan, after: datetime, now: datetime) -> list[datetime]:
        """The ticks in (after, now] that get a job: all that are fresh, and of the missed ones what the policy says."""
        schedule = plan.schedule
        fresh = list(schedule.ticks_between(max(after, now - LATE), now, _MOST))
        missed = _missed(schedule, plan.missed, after, max(after, now - LATE), fresh)
        if missed:
            logger.warning("schedule %s: nothing ran when it was due; catching up %s", plan.name, len(missed))
        return missed + fresh


def _missed(
    schedule: Schedule, policy: str, after: datetime, until: datetime, fresh: Sequence[datetime]
) -> list[datetime]:
    start = max(after, until - CATCH_UP)
    if policy == "skip" or until <= start:
        return []
    if policy == "all":
        return list(schedule.ticks_between(start, until, _MOST))
    last = schedule.latest_tick(until)
    return [last] if last is not None and last > start and not fresh else []
