"""The loop that writes endings: in batches, each row fenced, again and again until the database has answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta

from semel.core.settings import Settings
from semel.queue.worker.board import Board, Ending
from semel.queue.worker.links import Link
from semel.queue.worker.outcomes import log_given_back, log_lost, log_outcome
from semel.queue.worker.starter import Starter
from semel.store.faults import HistoryDayMissing, LockBusy
from semel.store.jobs import Detail, Fence, find_settled, give_back, settle, store_progress
from semel.store.upkeep import make_history_days

logger = logging.getLogger("semel.worker")


class Settling:
    """Writes endings until told to stop and nothing is left."""

    def __init__(
        self,
        link: Link,
        board: Board,
        attempts: Starter,
        settings: Settings,
        look_in: Callable[[float], None],
        emptied: Callable[[], None],
    ) -> None:
        self.link = link
        self.board = board
        self.attempts = attempts
        self.settings = settings
        self.look_in = look_in
        self.emptied = emptied
        self.stopping = False

    async def run(self) -> None:
        board, delay = self.board, self.settings.flush_delay.total_seconds()
        while not (self.stopping and not board.endings):
            if not board.endings:
                board.settled.clear()
                await board.settled.wait()
                continue
            if len(board.endings) < self.settings.flush_size and board.running and not self.stopping:
                await asyncio.sleep(delay)
            await self._flush()

    def stop(self) -> None:
        self.stopping = True
        self.board.settled.set()

    async def store_progress(self) -> None:
        """Write the newest progress of what runs."""
        rows = []
        for held in self.board.running.values():
            if held.progress is not None:
                fraction, message = held.progress
                held.progress = None
                rows.append((held.fence, fraction, message))
        if rows:
            await self.link.run(store_progress(rows))

    async def _flush(self) -> None:
        board = self.board
        batch, board.endings = (
            board.endings[: self.settings.flush_size],
            board.endings[self.settings.flush_size :],
        )
        board.flushing = len(batch)
        # One with crashes on its count waited here for others to end: leave it to another worker for a while.
        at_once = [ending for ending in batch if ending.give_back and (ending.at_once or board.relayed)]
        later = [ending for ending in batch if ending.give_back and not (ending.at_once or board.relayed)]
        ended = [ending for ending in batch if not ending.give_back and not ending.waits]
        waiting = [ending for ending in batch if not ending.give_back and ending.waits]
        try:
            for endings in filter(None, (ended, waiting)):
                await self._settle(endings)
            if at_once:
                await self._give_back(at_once, timedelta(0))
            if later:
                await self._give_back(later, timedelta(0) if self.attempts.stopping else self.settings.lease)
        finally:
            # Whatever went wrong, what is not written yet is tried again: its slot keeps its lease until then.
            board.endings[:0] = [ending for ending in batch if not ending.written]
            board.flushing = 0
        self.attempts.start_waiting()
        board.changed.set()
        self.emptied()

    async def _settle(self, endings: Sequence[Ending]) -> None:
        try:
            await self._write(endings)
        except HistoryDayMissing:
            await self.link.insist(make_history_days(ahead=1), patient=True)
            await self._settle(endings)
        except LockBusy as busy:
            if len(endings) > 1:
                middle = len(endings) // 2
                await self._settle(endings[:middle])
                await self._settle(endings[middle:])
            else:
                self._wait(endings[0], busy)
        except Exception:
            if len(endings) > 1:
                middle = len(endings) // 2
                await self._settle(endings[:middle])
                await self._settle(endings[middle:])
            else:
                await self._write_bare(endings[0])

    async def _write(self, endings: Sequence[Ending]) -> None:
        details = [ending.detail for ending in endings if ending.detail is not None]
        fences = [ending.held.fence for ending in endings]
        settled, _ = await self.link.insist(settle(fences, details, remember=self.settings.keep_done))
        lost: list[Ending] = []
        if len(settled) < len(endings):
            missing = [ending for ending in endings if _pair(ending.held.fence) not in settled]
            lost = await self._find_lost(missing)
        for ending in endings:
            held = ending.held
            if lost and ending in lost:
                log_lost(held, self.board.counts)
            elif ending.settlement is not None:
                log_outcome(held, ending.settlement, self.board.counts)
            ending.written = True
            self.board.release(held)
            if ending.detail is not None and ending.detail.delay is not None:
                self.look_in(ending.detail.delay)
            if held.job.ordering_key is not None:
                self.look_in(0.0)  # those behind it may be due now

    async def _find_lost(self, missing: Sequence[Ending]) -> list[Ending]:
        """Those that are not written because their claim is lost.

        A commit whose answer was lost is none of them: its row, here or in the history, has this claim and this status.
        """
        found, _ = await self.link.insist(find_settled([ending.held.fence for ending in missing]))
        lost = []
        for ending in missing:
            status = found.get(_pair(ending.held.fence))
            if status == "done" and ending.held.settling:
                logger.info("job %s: its transaction had committed, the answer was lost", ending.held.job.id)
                ending.settlement = None
                self.board.counts.done += 1
            elif status != ending.status:
                lost.append(ending)
        return lost

    async def _write_bare(self, ending: Ending) -> None:
        """The database refuses what this ending carries: write the status without it, so that the job still ends."""
        logger.exception("job %s: its result or error cannot be stored", ending.held.job.id)
        if ending.detail is not None:
            kept = ending.detail
            ending.detail = Detail(
                kept.id,
                kept.claim,
                status=kept.status,
                delay=kept.delay,
                run_at=kept.run_at,
                refund=kept.refund,
                summary="(what this attempt reported could not be stored; see the worker's log)",
            )
        try:
            await self._write([ending])
        except Exception:
            logger.exception("job %s: its end cannot be stored; its lease runs out", ending.held.job.id)
            ending.written = True
            self.board.release(ending.held)

    def _wait(self, ending: Ending, busy: LockBusy) -> None:
        """Leave an ending whose row somebody else has locked to a later flush."""
        if not ending.waits:
            ending.waits = True
            logger.warning("job %s: its end waits for a lock: %s", ending.held.job.id, busy.happened)

    async def _give_back(self, given: Sequence[Ending], delay: timedelta) -> None:
        fences: list[Fence] = [ending.held.fence for ending in given]
        try:
            await self.link.insist(give_back(fences, delay=delay))
        except LockBusy as busy:
            if len(given) == 1:
                self._wait(given[0], busy)
                return
            middle = len(given) // 2
            await self._give_back(given[:middle], delay)
            await self._give_back(given[middle:], delay)
            return
        for ending in given:
            held = ending.held
            log_given_back(
                held, "its claim was lost" if held.lost else "not started, or interrupted by a stop"
            )
            ending.written = True
            self.board.release(held)


def _pair(fence: Fence) -> tuple[int, int]:
    return fence.job_id, fence.claim
