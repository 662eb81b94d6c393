"""House-keeping by every supervisor: the history's days, retention, and a word about what is stuck."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from semel.errors import DatabaseUnreachable, SchemaMismatch
from semel.queue.worker.links import Link
from semel.queue.worker.messages import Numbers
from semel.store.faults import HistoryDayMissing, LockBusy
from semel.store.guard_upkeep import purge_completed, purge_operation_events, purge_released
from semel.store.guard_views import count_waiting
from semel.store.statement import Operation
from semel.store.upkeep import (
    BATCH,
    HistoryDay,
    detach_history_day,
    drop_history_day,
    find_history_days,
    find_stuck,
    finish_kept,
    make_history_days,
    purge_events,
    purge_failed,
    purge_progress,
    purge_sleepers,
    purge_ticks,
    set_lock_timeout,
)

logger = logging.getLogger("semel.worker")

STUCK_AGE = timedelta(minutes=10)
"""A job that is due for so long, or whose lease ended so long ago, is reported."""


@dataclass(slots=True)
class Chore:
    """What is done at an interval; each time that it finds nothing, twice as much later, up to ``longest``."""

    run: Callable[[], Awaitable[bool | None]]
    """Answers False where there was nothing to do."""
    interval: float
    longest: float = 0.0
    """Not given: it keeps to the interval."""
    wait: float = 0.0
    due: float = 0.0

    def done(self, *, found: bool) -> None:
        """It has run, or failed."""
        self.wait = self.interval if found else max(self.interval, min(2 * self.wait, self.longest))
        self.due = time.monotonic() + self.wait * random.uniform(0.9, 1.1)  # noqa: S311 - spreads the chores


class Upkeep:
    """Runs each chore at its own interval, in small batches, until cancelled."""

    def __init__(self, link: Link, schema: str, numbers: Numbers, pace: float = 1.0) -> None:
        self.link = link
        self.schema = schema
        self.numbers = numbers
        hour, minute = 3600 * pace, 60 * pace
        self._chores = (
            Chore(self._make_days, hour),
            Chore(self._finish_kept, minute / 6, minute),
            Chore(self._purge, 5 * minute),
            Chore(self._end_days, hour),
            Chore(self._report_stuck, minute),
            Chore(self._purge_operations, 5 * minute),
            Chore(self._report_operations, 10 * minute),
        )

    async def run(self) -> None:
        while True:
            for chore in self._chores:
                if time.monotonic() >= chore.due:
                    chore.done(found=await self._do(chore.run))
            await asyncio.sleep(max(0.05, min(chore.due for chore in self._chores) - time.monotonic()))

    async def _do(self, chore: Callable[[], Awaitable[bool | None]]) -> bool:
        try:
            return await chore() is not False
        except LockBusy as error:
            logger.info("upkeep: %s", error)
        except DatabaseUnreachable as error:
            logger.warning("upkeep: %s; trying again later", error.happened)
        except Exception:
            logger.exception("upkeep: %s failed; trying again later", getattr(chore, "__name__", "a chore"))
        return True

    async def _make_days(self) -> None:
        made = await self.link.run(make_history_days())
        if made:
            logger.info("upkeep: made %s days of the history", made)

    async def _finish_kept(self) -> bool:
        try:
            return await self._batches(finish_kept(remember=self.numbers.keep_done)) > 0
        except HistoryDayMissing:
            await self._make_days()
            return True

    async def _purge(self) -> None:
        gone = await self._batches(purge_failed(keep=self.numbers.keep_failed))
        if gone:
            logger.info("upkeep: deleted %s dead letters past their retention", gone)
        await self._batches(purge_ticks(keep=self.numbers.keep_ticks))
        await self._batches(purge_events(keep=self.numbers.keep_events))
        await self._batches(purge_progress())
        await self.link.run(purge_sleepers())

    async def _end_days(self) -> None:
        """Detach and drop the days past the retention. Readers hold it up; it never holds up readers or completions."""
        for day in await self.link.run(find_history_days(self.schema, keep=self.numbers.keep_done)):
            if day.state != "detaching" and not day.expired:
                continue
            try:
                await self._end_day(day)
            except LockBusy as error:
                logger.info("upkeep: the history's day %s stays for now: %s", day.table, error.happened)
            except SchemaMismatch:
                logger.debug("upkeep: another supervisor ended the history's day %s", day.table)

    async def _end_day(self, day: HistoryDay) -> None:
        await self.link.run(set_lock_timeout())
        if day.state != "detached":
            await self.link.run(detach_history_day(day))
        await self.link.run(drop_history_day(day))
        logger.info("upkeep: dropped the history's day %s", day.table)

    async def _report_stuck(self) -> None:
        for stuck in await self.link.run(find_stuck(age=STUCK_AGE)):
            logger.warning(
                "stuck: queue %s has %s due jobs and %s with a lease that ended, the oldest due for %s; "
                "does a worker serve this queue?",
                stuck.queue,
                stuck.due,
                stuck.expired,
                stuck.oldest,
                extra={"queue": stuck.queue, "due": stuck.due, "expired": stuck.expired},
            )

    async def _purge_operations(self) -> None:
        """Completed and long-released operations, and the history of those that are gone; never claimed or held ones."""
        gone = await self._batches(purge_completed(keep=self.numbers.keep_operations))
        gone += await self._batches(purge_released(keep=self.numbers.keep_released))
        if gone:
            logger.info("upkeep: deleted %s operations past their retention", gone)
        keep = self.numbers.keep_events
        window = await self.link.run(purge_operation_events(keep=keep))
        while window.more:
            window = await self.link.run(purge_operation_events(keep=keep, after=window.last))

    async def _report_operations(self) -> None:
        for waiting in await self.link.run(count_waiting()):
            logger.warning(
                "operations of %s wait for somebody: %s held, %s with a lease that ended and no further delivery, "
                "%s released and not claimed again, the longest for %s; see: semel held list, semel operations stale",
                waiting.job_type,
                waiting.held,
                waiting.stale,
                waiting.released,
                waiting.longest,
                extra={
                    "job_type": waiting.job_type,
                    "held": waiting.held,
                    "stale": waiting.stale,
                    "released": waiting.released,
                },
            )

    async def _batches(self, operation: Operation[int]) -> int:
        total = 0
        while (count := await self.link.run(operation)) > 0:
            total += count
            if count < BATCH:
                break
        return total
