"""Runs claimed jobs: on the event loop, on threads or in processes, each with its time-out."""

from __future__ import annotations

import asyncio
import logging
import random
import time
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any

from semel.core.decide import (
    PLAINLY_DONE,
    Interrupted,
    NoHandler,
    Raised,
    RanTooLong,
    Returned,
    Unreadable,
    decide,
)
from semel.core.decide import (
    Ending as AttemptEnding,
)
from semel.core.results import encode_result
from semel.core.retry import Policy, RetryPolicy
from semel.core.settings import Settings
from semel.errors import ClaimLost, ConfigurationError, PayloadUnreadable
from semel.queue.app import App
from semel.queue.job import Job
from semel.queue.worker.board import Board, Ending, Held
from semel.queue.worker.deadlines import Deadlines
from semel.queue.worker.ends import End, Ends
from semel.queue.worker.launching import Launcher
from semel.queue.worker.outcomes import log_lost, log_outcome, to_detail
from semel.queue.worker.processes import Processes
from semel.queue.worker.results import unrun
from semel.queue.worker.threads import HandlerInterrupted
from semel.queue.worker.transactions import Transactions
from semel.store.faults import LockBusy
from semel.store.jobs import Detail

logger = logging.getLogger("semel.worker")


class Attempts:
    """Starts the jobs that wait, as many at once as allowed, and turns each end into an ending on the board."""

    def __init__(
        self, app: App, settings: Settings, board: Board, installation: uuid.UUID, location: str | None
    ) -> None:
        self.app = app
        self.settings = settings
        self.board = board
        self.transactions = Transactions(app.url, app.database, settings.keep_done, self._encode)
        self.launcher = Launcher(
            installation,
            self.transactions,
            Processes(settings.concurrency, location, app.url),
            settings.concurrency,
        )
        self.concurrency = settings.concurrency
        self.alone: Held | None = None
        self.stopping = False
        self._jobs = app.jobs
        self._deadlines = Deadlines(board, lambda held: self.interrupt(held, "time-out"))
        self._ends = Ends(self._take_ends)

    def start_waiting(self) -> None:
        """Start what may start now. A job with crashes on its count waits until nothing else runs, and runs alone."""
        board = self.board
        if self.stopping or self.alone is not None:
            return
        if board.alone:
            if board.quiet:
                self.alone = board.alone.popleft()
                self._start(self.alone)
            return
        while board.waiting and len(board.running) < self.concurrency:
            self._start(board.waiting.popleft())

    def interrupt(self, held: Held, why: str) -> None:
        """Ask a running attempt to end, for a reason of the worker's: ``time-out``, ``stop`` or ``lost``."""
        if held.ended_by is None or why == "lost":
            held.ended_by = why
            held.lost = held.lost or why == "lost"
            if held.task is not None:
                held.task.add_done_callback(partial(self._cancelled_before, held))
            if held.interrupt is not None:
                held.interrupt()

    @property
    def paused(self) -> bool:
        return False

    async def close(self) -> None:
        self._deadlines.close()
        self.launcher.close()
        await self.transactions.close()

    def _start(self, held: Held) -> None:
        if self.board.slots.is_lost(held.slot, held.job.claim):
            log_lost(held, self.board.counts)
            self.board.release(held)
            if self.alone is held:
                self.alone = None
            return
        job = self._jobs.get(held.job.kind)
        timeout = None if job is None or job.relayed else job.timeout
        held.started = time.monotonic()
        held.deadline = None if timeout is None else held.started + timeout.total_seconds()
        self.board.slots.start(held.slot, held.deadline or 0.0)
        self.board.running[held.slot] = held
        if job is None:
            self._end(held, RetryPolicy(), NoHandler())
            return
        if job.relayed:
            self._end(held, job.retry, Raised(_for_relay(job)))
            return
        if held.deadline is not None:
            self._deadlines.watch(held.deadline)
        try:
            held.interrupt = self.launcher.launch(held, job, self._ends)
        except PayloadUnreadable as error:
            self._end(held, job.retry, Unreadable(error))
        except Exception as error:  # no thread or process to be had
            self._end(held, job.retry, Raised(error))

    def _cancelled_before(self, held: Held, task: asyncio.Task[None]) -> None:
        """A task that is cancelled before its first step never runs, so that it tells no end."""
        job = self._jobs.get(held.job.kind)
        if held.task is task and job is not None:
            self._ends.note(held, job, None, asyncio.CancelledError())

    def _take_ends(self, ends: Sequence[End]) -> None:
        for held, job, result, error in ends:
            try:
                if error is None and result is None and not held.settled:
                    self._leave(held)
                    self.board.end(Ending(held, None, PLAINLY_DONE))
                else:
                    self._ended(held, job, result, error)
            except Exception as unexpected:
                logger.exception("job %s: its end cannot be understood", held.job.id)
                if held.slot in self.board.running:
                    self._end(held, job.retry, Raised(unexpected))
        self.start_waiting()
        self.board.changed.set()

    def _ended(self, held: Held, job: Job[..., Any], result: Any, error: BaseException | None) -> None:
        if isinstance(error, ClaimLost) and self.transactions.lost(error):
            held.lost = True
        asked = held.ended_by is not None and isinstance(error, asyncio.CancelledError | HandlerInterrupted)
        if held.lost and (asked or isinstance(error, ClaimLost)):
            self._leave(held)
            log_lost(held, self.board.counts)
            self.board.release(held)
        elif asked and held.ended_by == "time-out" and job.timeout is not None:
            self._end(held, job.retry, RanTooLong(job.timeout))
        elif asked or (isinstance(error, LockBusy) and job.transaction):
            self._end(held, job.retry, Interrupted())
        elif error is not None:
            self._end(held, job.retry, Raised(error))
        elif (not_run := unrun(result)) is not None and not held.settled:
            self._end(held, job.retry, Raised(not_run))
        else:
            self._end(held, job.retry, Returned(None if held.settled else self._encode(held, result)))

    def _end(self, held: Held, policy: Policy, ending: AttemptEnding) -> None:
        self._leave(held)
        if isinstance(ending, Interrupted):
            self.board.end(Ending(held, None, give_back=True))
            return
        decided = self._decide(held, policy, ending)
        if held.settled:
            if decided.settlement is not None:
                log_outcome(held, decided.settlement, self.board.counts)
            self.board.release(held)
        else:
            self.board.end(decided)

    def _decide(self, held: Held, policy: Policy, ending: AttemptEnding) -> Ending:
        try:
            settlement = decide(held.job.identity(), ending, policy, random.random)
            return Ending(held, to_detail(held, settlement), settlement)
        except BaseException as error:  # whatever it is, the job must end
            logger.exception("job %s: its outcome cannot be decided; it fails", held.job.id)
            summary = f"its outcome could not be decided: {type(error).__name__}; see the worker's log"
            return Ending(held, Detail(held.job.id, held.job.claim, status="failed", summary=summary))

    def _leave(self, held: Held) -> None:
        """The attempt runs no more."""
        del self.board.running[held.slot]
        if self.alone is held:
            self.alone = None
        self.board.learn(held)

    def _encode(self, held: Held, result: Any) -> bytes | None:
        """The result as JSON. One that cannot be stored is dropped: the job is done all the same."""
        encoded, reason = encode_result(result, self.settings.payload_limit)
        if reason:
            logger.warning("job %s: its result is not stored: %s", held.job.id, reason)
        return encoded


def _for_relay(job: Job[..., Any]) -> ConfigurationError:
    return ConfigurationError(
        f"{job.kind} is for a relay, and was enqueued on a queue that workers serve.",
        holds="It was not forwarded.",
        remedy=f"Enqueue it on the queue that the relay forwards: {job.queue}.",
    )
