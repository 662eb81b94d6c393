"""Keeps the leases of what a child's slots hold, from outside the process that runs the handlers.

So a busy event loop, or a C call that keeps the interpreter's lock, never makes a live job look dead.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from semel.errors import SemelError
from semel.queue.worker.links import Link
from semel.queue.worker.slots import Slot, SlotTable
from semel.store.jobs import Fence, extend

logger = logging.getLogger("semel.worker")

_BATCH = 500


@dataclass(frozen=True, slots=True)
class Claimed:
    """One claim and the table that it stands in."""

    table: SlotTable
    slot: Slot

    @property
    def fence(self) -> Fence:
        return Fence(self.slot.job_id, self.slot.claim, self.slot.worker)


class Leases:
    """Extends each claim that has outlived a third of its lease; marks those that turn out to be lost."""

    def __init__(
        self,
        link: Link,
        lease: timedelta,
        tables: Callable[[], Iterable[SlotTable]],
        keep: Callable[[Slot], bool] = lambda _: True,
        *,
        guarded: bool = False,
    ) -> None:
        self.link = link
        self.lease = lease
        self.tables = tables
        self.keep = keep
        self.guarded = guarded
        self._extended: dict[tuple[SlotTable, int], tuple[int, float]] = {}

    @property
    def period(self) -> float:
        """Seconds between two looks at the slots; a look costs no statement unless a lease is due."""
        return min(self.lease.total_seconds() / 9, 1.0)

    async def run(self) -> None:
        """Look and extend until cancelled. A database that is away costs time only."""
        while True:
            await asyncio.sleep(self.period)
            try:
                await self.beat()
            except SemelError as error:
                logger.warning("extending leases: %s; trying again", error.happened)
            except Exception:
                logger.exception("extending leases failed; trying again")

    async def beat(self) -> None:
        """Extend what is due now."""
        due = self._due(time.monotonic() - self.lease.total_seconds() / 3)
        for start in range(0, len(due), _BATCH):
            await self._extend(due[start : start + _BATCH])

    def _due(self, before: float) -> list[Claimed]:
        due, known = [], {}
        for table in self.tables():
            for slot in table.read():
                if not self.keep(slot):
                    continue
                last = self._extended.get((table, slot.index))
                if last is not None and last[0] == slot.claim:
                    known[table, slot.index] = last
                    if last[1] > before:
                        continue
                elif slot.claimed > before:
                    continue
                if not table.is_lost(slot.index, slot.claim):
                    due.append(Claimed(table, slot))
        self._extended = known
        return due

    async def _extend(self, due: Sequence[Claimed]) -> None:
        asked = time.monotonic()
        lost = await self.link.run(
            extend([claimed.fence for claimed in due], lease=self.lease, guarded=self.guarded)
        )
        for claimed in due:
            slot = claimed.slot
            if (slot.job_id, slot.claim) in lost:
                # Or just settled, its slot not cleared yet: so the child, which knows, is the one to warn.
                claimed.table.mark_lost(slot.index, slot.claim)
                logger.debug(
                    "job %s: its lease cannot be extended, the claim no longer holds",
                    slot.job_id,
                    extra={"job_id": slot.job_id, "claim": slot.claim},
                )
            else:
                self._extended[claimed.table, slot.index] = (slot.claim, asked)
                claimed.table.mark_kept(slot.index, slot.claim, asked)


def overdue(tables: Iterable[SlotTable], grace: timedelta) -> list[Claimed]:
    """Attempts that have ignored their time-out for longer than ``grace``."""
    latest = time.monotonic() - grace.total_seconds()
    return [
        Claimed(table, slot)
        for table in tables
        for slot in table.read()
        if slot.started and 0 < slot.deadline < latest
    ]
