"""Runs claimed jobs: on the event loop, on threads or in processes, each with its time-out."""

from __future__ import annotations

import asyncio
import logging
import random
import time
import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from semel.core.decide import (
    Ending as AttemptEnding,
)
from semel.core.decide import (
    Interrupted,
    NoHandler,
    Raised,
    RanTooLong,
    Returned,
    Unreadable,
    decide,
)
from semel.core.retry import Policy, RetryPolicy
from semel.core.settings import Settings
from semel.errors import ClaimLost, PayloadUnreadable
from semel.queue.app import App
from semel.queue.context import JobContext, make_context
from semel.queue.job import Job
from semel.queue.worker.board import Board, Ending, Held
from semel.queue.worker.outcomes import log_lost, log_outcome, to_detail
from semel.queue.worker.processes import Processes, Work
from semel.queue.worker.threads import HandlerInterrupted, Threads
from semel.queue.worker.transactions import Transactions
from semel.store.jobs import Detail

logger = logging.getLogger("semel.worker")
_RUN_TIME_WEIGHT = 0.1


class Attempts:
    """Starts the jobs that wait, as many at once as allowed, and turns each end into an ending on the board."""

    def __init__(
        self, app: App, settings: Settings, board: Board, installation: uuid.UUID, location: str | None
    ) -> None:
        self.app = app
        self.settings = settings
        self.board = board
        self.installation = installation
        self.transactions = Transactions(app.url, app.database, settings.keep_done, self._encode)
        self.concurrency = settings.concurrency
        self.threads = Threads(settings.concurrency)
        self.processes = Processes(settings.concurrency, location)
        self.alone: Held | None = None
        self.stopping = False

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
            if held.interrupt is not None:
                held.interrupt()

    def close(self) -> None:
        self.threads.close()
        self.processes.close()

    def _start(self, held: Held) -> None:
        if self.board.slots.is_lost(held.slot, held.job.claim):
            log_lost(held, self.board.counts)
            self.board.release(held)
            return
        job = self.app.jobs.get(held.job.kind)
        timeout = None if job is None else job.timeout
        held.started = time.monotonic()
        held.deadline = None if timeout is None else held.started + timeout.total_seconds()
        self.board.slots.start(held.slot, held.deadline or 0.0)
        self.board.running[held.slot] = held
        if job is None:
            self._end(held, RetryPolicy(), NoHandler())
            return
        if timeout is not None:
            loop = asyncio.get_running_loop()
            held.timer = loop.call_later(timeout.total_seconds(), self.interrupt, held, "time-out")
        try:
            self._launch(held, job)
        except PayloadUnreadable as error:
            self._end(held, job.retry, Unreadable(error))

    def _launch(self, held: Held, job: Job[..., Any]) -> None:
        if job.run_in == "process":
            context = self._context(held, job) if job.context else None
            work = Work(
                job.function.__module__, job.function.__qualname__, job.kind, context, held.job.payload
            )
            held.interrupt = self.processes.start(work, held.report, self._from_thread(held, job))
            return
        args, kwargs = job.signature.decode(held.job.payload)
        if job.is_async:
            task = asyncio.get_running_loop().create_task(self._run_async(held, job, args, kwargs))
            task.add_done_callback(lambda ended: self._task_ended(held, job, ended))
            held.interrupt = task.cancel  # type: ignore[assignment]
        else:
            call = self._sync_call(held, job, args, kwargs)
            held.interrupt = self.threads.start(call, self._from_thread(held, job))

    async def _run_async(
        self, held: Held, job: Job[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, BaseException | None]:
        """The handler's result or error. An exit is an error too: let out of a task, it would end the event loop."""
        try:
            if job.transaction:
                return await self.transactions.run_async(
                    held,
                    lambda connection: job.function(*self._leading(held, job, connection), *args, **kwargs),
                ), None
            leading = (self._context(held, job),) if job.context else ()
            return await job.function(*leading, *args, **kwargs), None
        except BaseException as error:
            return None, error

    def _task_ended(
        self, held: Held, job: Job[..., Any], task: asyncio.Task[tuple[Any, BaseException | None]]
    ) -> None:
        result, error = (None, asyncio.CancelledError()) if task.cancelled() else task.result()
        self._ended(held, job, result, error)

    def _sync_call(
        self, held: Held, job: Job[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Callable[[], Any]:
        if job.transaction:
            return lambda: self.transactions.run(
                held, lambda connection: job.function(*self._leading(held, job, connection), *args, **kwargs)
            )
        leading = (self._context(held, job),) if job.context else ()
        return lambda: job.function(*leading, *args, **kwargs)

    def _leading(self, held: Held, job: Job[..., Any], connection: Any) -> tuple[Any, ...]:
        return (self._context(held, job, connection), connection) if job.context else (connection,)

    def _context(self, held: Held, job: Job[..., Any], connection: Any = None) -> JobContext:
        in_process = job.run_in == "process"
        return make_context(
            held.job,
            installation=self.installation,
            timeout=job.timeout,
            deadline=held.deadline,
            state=None if in_process else held,
            connection=connection,
        )

    def _from_thread(self, held: Held, job: Job[..., Any]) -> Callable[[Any, BaseException | None], None]:
        loop = asyncio.get_running_loop()

        def done(result: Any, error: BaseException | None) -> None:
            try:
                loop.call_soon_threadsafe(self._ended, held, job, result, error)
            except RuntimeError:  # the loop is closed: the worker has stopped without this attempt
                logger.warning("job %s ended after its worker had stopped", held.job.id)

        return done

    def _ended(self, held: Held, job: Job[..., Any], result: Any, error: BaseException | None) -> None:
        if isinstance(error, ClaimLost) and self.transactions.lost(error):
            held.lost = True
        asked = held.ended_by is not None and isinstance(error, asyncio.CancelledError | HandlerInterrupted)
        if held.lost and (asked or isinstance(error, ClaimLost)):
            self._leave(held)
            log_lost(held, self.board.counts)
            self.board.release(held)
            self._next()
        elif asked and held.ended_by == "time-out" and job.timeout is not None:
            self._end(held, job.retry, RanTooLong(job.timeout))
        elif asked:
            self._end(held, job.retry, Interrupted())
        elif error is not None:
            self._end(held, job.retry, Raised(error))
        else:
            self._end(held, job.retry, Returned(None if held.settled else self._encode(held, result)))

    def _end(self, held: Held, policy: Policy, ending: AttemptEnding) -> None:
        self._leave(held)
        if isinstance(ending, Interrupted):
            self.board.end(Ending(held, None, give_back=True))
            self._next()
            return
        detail = self._decide(held, policy, ending)
        if held.settled:
            self.board.release(held)
        else:
            self.board.end(Ending(held, detail))
        self._next()

    def _decide(self, held: Held, policy: Policy, ending: AttemptEnding) -> Detail | None:
        try:
            settlement = decide(held.job.identity(), ending, policy, random.random)
            log_outcome(held, settlement, self.board.counts)
            return to_detail(held, settlement)
        except Exception as error:  # whatever it is, the job must end
            logger.exception("job %s: its outcome cannot be decided; it fails", held.job.id)
            summary = f"its outcome could not be decided: {type(error).__name__}; see the worker's log"
            return Detail(held.job.id, held.job.claim, status="failed", summary=summary)

    def _leave(self, held: Held) -> None:
        """The attempt runs no more."""
        if held.timer is not None:
            held.timer.cancel()
        del self.board.running[held.slot]
        if self.alone is held:
            self.alone = None
        self._learn(held)

    def _next(self) -> None:
        self.start_waiting()
        self.board.changed.set()

    def _learn(self, held: Held) -> None:
        if held.started is not None:
            taken = time.monotonic() - held.started
            known = self.board.run_time
            self.board.run_time = taken if not known else known + _RUN_TIME_WEIGHT * (taken - known)

    def _encode(self, held: Held, result: Any) -> bytes | None:
        """The result as JSON. One that cannot be stored is dropped: the job is done all the same."""
        if result is None:
            return None
        try:
            encoded = msgspec.json.encode(result)
        except Exception as error:
            logger.warning("job %s: its result is not stored: %s", held.job.id, error)
            return None
        if len(encoded) > self.settings.payload_limit or b"\\u0000" in encoded:
            logger.warning(
                "job %s: its result is not stored: %s bytes, or a NUL in it", held.job.id, len(encoded)
            )
            return None
        return encoded
